#include "models/catalogue.h"

#include "models/block_ftl.h"
#include "models/disk.h"
#include "models/fast_ftl.h"
#include "models/flash_device.h"
#include "models/page_ftl.h"
#include "models/shingled_disk.h"

namespace varve::bench {

namespace {

constexpr double kMs = 1e-3, kUs = 1e-6, kMB = 1e6;
constexpr std::uint64_t kMiB = 1u << 20;

Facts flash(std::string_view name, std::string_view kind, std::uint64_t size, std::uint64_t unit, double idle_watts) {
  return {std::string(name), std::string(kind), size, unit, false, true, idle_watts};
}

// Allocation units of 4 MiB, five open, pages of 16 KiB: the middle of the Linaro flash card survey; a card of speed class 10.
std::unique_ptr<DeviceModel> cheap_card(std::uint64_t size) {
  const FlashTiming timing{.read_request = 400 * kUs, .write_request = 400 * kUs, .scattered_read = 300 * kUs, .read_rate = 20 * kMB,
                           .program_rate = 15 * kMB, .copy_rate = 15 * kMB, .erase = 2 * kMs, .read_watts = 0.2, .program_watts = 0.3};
  const BlockMapping mapping{.unit_pages = 4 * kMiB / kFlashPage, .open_units = 5, .program_pages = 4};
  return std::make_unique<FlashDevice>(flash("sd-cheap", "SD card, block-mapped", size, 4 * kMiB, 0.001), timing,
                                       std::make_unique<BlockFtl>(size / kFlashPage, mapping));
}

// Units of 8 MiB, two open, as cheap sticks of that survey.
std::unique_ptr<DeviceModel> usb_stick(std::uint64_t size) {
  const FlashTiming timing{.read_request = 500 * kUs, .write_request = 600 * kUs, .scattered_read = 250 * kUs, .read_rate = 25 * kMB,
                           .program_rate = 10 * kMB, .copy_rate = 10 * kMB, .erase = 2 * kMs, .read_watts = 0.3, .program_watts = 0.4};
  const BlockMapping mapping{.unit_pages = 8 * kMiB / kFlashPage, .open_units = 2, .program_pages = 8};
  return std::make_unique<FlashDevice>(flash("usb-stick", "USB stick, block-mapped", size, 8 * kMiB, 0.1), timing,
                                       std::make_unique<BlockFtl>(size / kFlashPage, mapping));
}

std::unique_ptr<DeviceModel> application_card(std::string_view name, std::uint64_t size, double reads, double writes) {
  constexpr double kRequest = 150 * kUs;
  const double read_rate = 80 * kMB, program_rate = 20 * kMB;
  const FlashTiming timing{.read_request = kRequest, .write_request = kRequest,
                           .scattered_read = 1 / reads - kRequest - kFlashPage / read_rate,
                           .scattered_write = 1 / writes - kRequest - kFlashPage / program_rate,
                           .read_rate = read_rate, .program_rate = program_rate, .copy_rate = 30 * kMB, .erase = 2 * kMs,
                           .read_watts = 0.2, .program_watts = 0.3};
  const PageMapping mapping{.block_pages = 4 * kMiB / kFlashPage, .spare = 0.07};
  return std::make_unique<FlashDevice>(flash(name, "SD card, page-mapped", size, 4 * kMiB, 0.001), timing,
                                       std::make_unique<PageFtl>(size / kFlashPage, mapping));
}

std::unique_ptr<DeviceModel> a1_card(std::uint64_t size) { return application_card("sd-a1", size, 1500, 500); }
std::unique_ptr<DeviceModel> a2_card(std::uint64_t size) { return application_card("sd-a2", size, 4000, 2000); }

std::unique_ptr<DeviceModel> emmc(std::uint64_t size) {
  const FlashTiming timing{.read_request = 100 * kUs, .write_request = 100 * kUs, .scattered_read = 100 * kUs, .scattered_write = 300 * kUs,
                           .flush = 1 * kMs, .read_rate = 166 * kMB, .program_rate = 40 * kMB, .copy_rate = 40 * kMB, .erase = 2 * kMs,
                           .read_watts = 0.3, .program_watts = 0.4};
  const PageMapping mapping{.block_pages = 4 * kMiB / kFlashPage, .spare = 0.07};
  return std::make_unique<FlashDevice>(flash("emmc", "eMMC, page-mapped", size, 4 * kMiB, 0.005), timing,
                                       std::make_unique<PageFtl>(size / kFlashPage, mapping));
}

FlashTiming ssd_timing() {
  return {.read_request = 60 * kUs, .write_request = 25 * kUs, .scattered_read = 40 * kUs, .flush = 500 * kUs, .read_rate = 550 * kMB,
          .program_rate = 520 * kMB, .copy_rate = 400 * kMB, .erase = 1.5 * kMs, .read_watts = 2.2, .program_watts = 2.25};
}

std::unique_ptr<DeviceModel> page_ssd(std::uint64_t size) {
  const PageMapping mapping{.block_pages = 2 * kMiB / kFlashPage, .spare = 0.07};
  return std::make_unique<FlashDevice>(flash("ssd-page", "SSD, page-mapped", size, 2 * kMiB, 0.05), ssd_timing(),
                                       std::make_unique<PageFtl>(size / kFlashPage, mapping));
}

std::unique_ptr<DeviceModel> hybrid_ssd(std::uint64_t size) {
  const HybridMapping mapping{.block_pages = 128, .spare = 0.10};
  return std::make_unique<FlashDevice>(flash("ssd-hybrid", "SSD, hybrid mapping (FAST)", size, kMiB / 2, 0.05), ssd_timing(),
                                       std::make_unique<FastFtl>(size / kFlashPage, mapping));
}

// Hitachi Travelstar 5K320 (data sheet); its media rate is assumed.
SpindleParameters laptop_spindle(std::uint64_t size) {
  return {.size = size, .rpm = 5400, .outer_rate = 80 * kMB, .inner_rate = 40 * kMB, .next_track = 1 * kMs, .average_seek = 12 * kMs,
          .full_stroke = 20 * kMs, .write_settle = 1 * kMs, .seek_watts = 2.2 - 0.55, .read_watts = 1.8 - 0.55, .write_watts = 1.8 - 0.55,
          .turn_watts = 1.7 - 0.55};
}

std::unique_ptr<DeviceModel> laptop_disk(std::uint64_t size) {
  const DiskParameters parameters{.spindle = laptop_spindle(size), .interface_rate = 150 * kMB, .request = 100 * kUs,
                                  .cache_bytes = 8 * kMiB};
  return std::make_unique<Disk>(Facts{"hdd-laptop", "2.5\" disk, 5400 rpm", size, 0, true, false, 0.55}, parameters);
}

std::unique_ptr<DeviceModel> shingled_disk(std::uint64_t size) {
  SpindleParameters spindle = laptop_spindle(size);
  spindle.outer_rate = 140 * kMB;
  spindle.inner_rate = 70 * kMB;
  const ShingleParameters parameters{.spindle = spindle, .request = 100 * kUs, .band = 30 * kMiB, .cache_share = 0.01};
  return std::make_unique<ShingledDisk>(Facts{"smr-dm", "shingled disk, drive-managed", size, 30 * kMiB, true, false, 0.55}, parameters);
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {"sd-cheap", "SD card, block-mapped: units of 4 MiB, five open", cheap_card},
      {"usb-stick", "USB stick, block-mapped: units of 8 MiB, two open", usb_stick},
      {"sd-a1", "SD card of application class A1, page-mapped", a1_card},
      {"sd-a2", "SD card of application class A2, page-mapped", a2_card},
      {"emmc", "eMMC, page-mapped", emmc},
      {"ssd-page", "SSD, page-mapped: erase blocks of 2 MiB, 7 % spare", page_ssd},
      {"ssd-hybrid", "SSD, hybrid mapping (FAST): blocks of 512 KiB, 10 % spare", hybrid_ssd},
      {"hdd-laptop", "2.5\" disk, 5400 rpm, 8 MiB of cache", laptop_disk},
      {"smr-dm", "shingled disk, drive-managed: bands of 30 MiB, 1 % of cache", shingled_disk},
  };
  return entries;
}

std::unique_ptr<DeviceModel> make_model(std::string_view name, std::uint64_t size) {
  for (const CatalogueEntry& entry : catalogue())
    if (entry.name == name) return entry.make(size);
  return nullptr;
}

}  // namespace varve::bench
