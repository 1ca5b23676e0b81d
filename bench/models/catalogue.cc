#include "models/catalogue.h"

#include <algorithm>

#include "models/bast_ftl.h"
#include "models/block_ftl.h"
#include "models/disk.h"
#include "models/fast_ftl.h"
#include "models/flash_device.h"
#include "models/page_ftl.h"
#include "models/shingled_disk.h"
#include "models/slc_cache.h"

namespace varve::bench {

namespace {

constexpr double kMs = 1e-3, kUs = 1e-6, kMB = 1e6;
constexpr std::uint64_t kMiB = 1u << 20;

Facts flash(std::string_view name, std::string_view kind, std::uint64_t size, std::uint64_t unit, double idle_watts) {
  return {.name = std::string(name), .kind = std::string(kind), .size = size, .erase_unit = unit, .discards = true,
          .idle_watts = idle_watts};
}

Facts rotating(std::string name, std::string kind, std::uint64_t size, std::uint64_t unit, double idle_watts) {
  return {.name = std::move(name), .kind = std::move(kind), .size = size, .erase_unit = unit, .rotational = true, .idle_watts = idle_watts};
}

// Watts of cards, stick and eMMC are unsourced (docs/devices.md).

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

// Units of 4 MiB, one open, pages of 16 KiB: the worst sticks of that survey.
std::unique_ptr<DeviceModel> one_unit_stick(std::uint64_t size) {
  const FlashTiming timing{.read_request = 500 * kUs, .write_request = 600 * kUs, .scattered_read = 250 * kUs, .read_rate = 25 * kMB,
                           .program_rate = 8 * kMB, .copy_rate = 8 * kMB, .erase = 2 * kMs, .read_watts = 0.3, .program_watts = 0.4};
  const BlockMapping mapping{.unit_pages = 4 * kMiB / kFlashPage, .open_units = 1, .program_pages = 4};
  return std::make_unique<FlashDevice>(flash("usb-one", "USB stick, block-mapped, one open unit", size, 4 * kMiB, 0.1), timing,
                                       std::make_unique<BlockFtl>(size / kFlashPage, mapping));
}

// Units of 12 MiB, as those with three bits a cell of that survey, behind a cache of single-level cells.
std::unique_ptr<DeviceModel> cached_card(std::uint64_t size) {
  const FlashTiming timing{.read_request = 300 * kUs, .write_request = 300 * kUs, .scattered_read = 300 * kUs, .read_rate = 80 * kMB,
                           .program_rate = 15 * kMB, .cache_rate = 40 * kMB, .copy_rate = 15 * kMB, .erase = 3 * kMs, .read_watts = 0.2,
                           .program_watts = 0.3};
  const BlockMapping mapping{.unit_pages = 12 * kMiB / kFlashPage, .open_units = 2, .program_pages = 4};
  auto flash_behind = std::make_unique<BlockFtl>(size / kFlashPage, mapping);
  const SlcCaching caching{.pages = size / 64 / kFlashPage, .unit_pages = mapping.unit_pages};
  return std::make_unique<FlashDevice>(flash("sd-tlc", "SD card, block-mapped, SLC cache", size, 12 * kMiB, 0.001), timing,
                                       std::make_unique<SlcCache>(std::move(flash_behind), caching));
}

// Log blocks of 1 MiB, 32 of them, each beside one data block.
std::unique_ptr<DeviceModel> log_block_card(std::uint64_t size) {
  const FlashTiming timing{.read_request = 250 * kUs, .write_request = 250 * kUs, .scattered_read = 250 * kUs, .read_rate = 40 * kMB,
                           .program_rate = 15 * kMB, .copy_rate = 15 * kMB, .erase = 2 * kMs, .read_watts = 0.2, .program_watts = 0.3};
  const LogBlockMapping mapping{.block_pages = kMiB / kFlashPage, .log_blocks = 32};
  return std::make_unique<FlashDevice>(flash("card-bast", "card, hybrid mapping (BAST)", size, kMiB, 0.001), timing,
                                       std::make_unique<BastFtl>(size / kFlashPage, mapping));
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

// Small blocks, pages of 16 KiB: a flush fills one up, and writes one of the map.
std::unique_ptr<DeviceModel> paged_emmc(std::uint64_t size) {
  const FlashTiming timing{.read_request = 100 * kUs, .write_request = 100 * kUs, .scattered_read = 100 * kUs, .scattered_write = 300 * kUs,
                           .flush = 1 * kMs, .read_rate = 166 * kMB, .program_rate = 40 * kMB, .copy_rate = 40 * kMB, .erase = 2 * kMs,
                           .read_watts = 0.3, .program_watts = 0.4};
  const PageMapping mapping{.block_pages = kMiB / 2 / kFlashPage, .spare = 0.07, .program_pages = 4, .map_pages = 4};
  return std::make_unique<FlashDevice>(flash("emmc-16k", "eMMC, page-mapped, pages of 16 KiB", size, kMiB / 2, 0.005), timing,
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

// ssd-page with a queue: its data sheet promises ten times as many reads a second where 32 wait.
std::unique_ptr<DeviceModel> queued_ssd(std::uint64_t size) {
  const PageMapping mapping{.block_pages = 2 * kMiB / kFlashPage, .spare = 0.07};
  FlashTiming timing = ssd_timing();
  timing.at_once = 10;
  return std::make_unique<FlashDevice>(flash("ssd-queue", "SSD, page-mapped, ten requests at once", size, 2 * kMiB, 0.05), timing,
                                       std::make_unique<PageFtl>(size / kFlashPage, mapping));
}

// Four bits a cell, with a cache of a 24th of its size: as fast as the interface in it, 80 MB/s behind it.
std::unique_ptr<DeviceModel> cached_ssd(std::uint64_t size) {
  const PageMapping mapping{.block_pages = 2 * kMiB / kFlashPage, .spare = 0.07};
  FlashTiming timing = ssd_timing();
  timing.at_once = 10;
  timing.cache_rate = 530 * kMB;
  timing.program_rate = timing.copy_rate = 80 * kMB;
  auto flash_behind = std::make_unique<PageFtl>(size / kFlashPage, mapping);
  const SlcCaching caching{.pages = size / 24 / kFlashPage, .unit_pages = mapping.block_pages};
  return std::make_unique<FlashDevice>(flash("ssd-qlc", "SSD, page-mapped, SLC cache", size, 2 * kMiB, 0.05), timing,
                                       std::make_unique<SlcCache>(std::move(flash_behind), caching));
}

std::unique_ptr<DeviceModel> hybrid_ssd(std::uint64_t size) {
  const HybridMapping mapping{.block_pages = 128, .spare = 0.10};
  return std::make_unique<FlashDevice>(flash("ssd-hybrid", "SSD, hybrid mapping (FAST)", size, kMiB / 2, 0.05), ssd_timing(),
                                       std::make_unique<FastFtl>(size / kFlashPage, mapping));
}

// SFS's three drives (Min et al., FAST 2012, table 1): the rates are published, what stands below the mapping is fitted to them.
std::unique_ptr<DeviceModel> sfs_ssd(std::string_view name, std::uint64_t size, const FlashTiming& timing, std::uint64_t unit) {
  const PageMapping mapping{.block_pages = unit / kFlashPage, .spare = 0.07};
  Facts facts = flash(name, "SSD of SFS's table 1, page-mapped", size, unit, 0);
  return std::make_unique<FlashDevice>(std::move(facts), timing, std::make_unique<PageFtl>(size / kFlashPage, mapping));
}

std::unique_ptr<DeviceModel> sfs_h(std::uint64_t size) {
  return sfs_ssd("sfs-h", size, {.scattered_read = 278 * kUs, .scattered_write = 570 * kUs, .read_rate = 216.9 * kMB,
                                 .program_rate = 170 * kMB, .copy_rate = 170 * kMB}, 16 * kMiB);
}
std::unique_ptr<DeviceModel> sfs_m(std::uint64_t size) {
  return sfs_ssd("sfs-m", size, {.scattered_read = 367 * kUs, .scattered_write = 6.4 * kMs, .read_rate = 212.6 * kMB,
                                 .program_rate = 87 * kMB, .copy_rate = 87 * kMB}, 32 * kMiB);
}
// 4 KiB take two seconds: what copying a unit takes.
std::unique_ptr<DeviceModel> sfs_l(std::uint64_t size) {
  const FlashTiming timing{.scattered_read = 714 * kUs, .read_rate = 69.1 * kMB, .program_rate = 38 * kMB, .copy_rate = 8.2 * kMB};
  const BlockMapping mapping{.unit_pages = 16 * kMiB / kFlashPage, .open_units = 1, .program_pages = 1};
  return std::make_unique<FlashDevice>(flash("sfs-l", "USB stick of SFS's table 1, block-mapped", size, 16 * kMiB, 0), timing,
                                       std::make_unique<BlockFtl>(size / kFlashPage, mapping));
}

// The flash below SFS's figures 13 and 14: pages of 4 KiB, blocks of 512 KiB, 10 % spare, which may mean 10 % of what can be addressed
// or of all there is. Multi-level cells; how many cycles they stand is assumed.
constexpr std::uint64_t kSfsBlock = 128;

Facts sfs_facts(std::string_view name, std::string_view kind, std::uint64_t size) {
  Facts facts = flash(name, kind, size, kSfsBlock * kFlashPage, 0);
  facts.erase_cycles = 3000;
  return facts;
}

std::unique_ptr<DeviceModel> page_flash(std::string_view name, std::uint64_t size, double spare, VictimPolicy policy) {
  const PageMapping mapping{.block_pages = kSfsBlock, .spare = spare, .policy = policy};
  return std::make_unique<FlashDevice>(sfs_facts(name, "flash, page-mapped", size), ssd_timing(),
                                       std::make_unique<PageFtl>(size / kFlashPage, mapping));
}
std::unique_ptr<DeviceModel> fast_flash(std::string_view name, std::uint64_t size, double spare) {
  const HybridMapping mapping{.block_pages = kSfsBlock, .spare = spare};
  return std::make_unique<FlashDevice>(sfs_facts(name, "flash, hybrid mapping (FAST)", size), ssd_timing(),
                                       std::make_unique<FastFtl>(size / kFlashPage, mapping));
}

std::unique_ptr<DeviceModel> ftl_page(std::uint64_t size) { return page_flash("ftl-page", size, 0.10, VictimPolicy::greedy); }
std::unique_ptr<DeviceModel> ftl_page_age(std::uint64_t size) { return page_flash("ftl-page-age", size, 0.10, VictimPolicy::cost_benefit); }
std::unique_ptr<DeviceModel> ftl_page_raw(std::uint64_t size) {
  return page_flash("ftl-page-raw", size, 1 / 0.9 - 1, VictimPolicy::greedy);
}
std::unique_ptr<DeviceModel> ftl_fast(std::uint64_t size) { return fast_flash("ftl-fast", size, 0.10); }
std::unique_ptr<DeviceModel> ftl_fast_raw(std::uint64_t size) { return fast_flash("ftl-fast-raw", size, 1 / 0.9 - 1); }

// Recoveries as those of the Travelstar 5K160; after how long a disk falls asleep is adaptive in all data sheets, and chosen here.
constexpr double kActiveIdleAfter = 1, kLowPowerAfter = 10, kActiveIdleRecovery = 20 * kMs, kLowPowerRecovery = 300 * kMs;

std::vector<PowerLadder::Step> idle_steps(double performance, double active, double low_power) {
  return {{PowerState::performance_idle, 0, performance, 0, 0},
          {PowerState::active_idle, kActiveIdleAfter, active, kActiveIdleRecovery, 0},
          {PowerState::low_power_idle, kLowPowerAfter, low_power, kLowPowerRecovery, 0}};
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
  auto disk = std::make_unique<Disk>(rotating("hdd-laptop", "2.5\" disk, 5400 rpm", size, 0, 0.55), parameters);
  disk->power() = PowerLadder(idle_steps(1.7, 0.8, 0.55), {PowerState::standby, 0, 0.2, 2.5, 9.5});
  return disk;
}

// Seagate Constellation ST9500430SS (product manual). What a spin-up takes was not found, so it has no standby.
SpindleParameters fast_laptop_spindle(std::uint64_t size, double idle) {
  return {.size = size, .rpm = 7200, .outer_rate = 142 * kMB, .inner_rate = 75 * kMB, .next_track = 0.5 * kMs, .average_seek = 8 * kMs,
          .full_stroke = 17.35 * kMs, .write_settle = 0.4 * kMs, .seek_watts = 3.73 - idle, .read_watts = 5.09 - idle,
          .write_watts = 5.39 - idle, .turn_watts = 2.85 - idle};
}

std::unique_ptr<DeviceModel> fast_laptop_disk(std::uint64_t size) {
  constexpr double kIdle = 1.75;
  const DiskParameters parameters{.spindle = fast_laptop_spindle(size, kIdle), .interface_rate = 300 * kMB, .request = 100 * kUs,
                                  .cache_bytes = 16 * kMiB};
  auto disk = std::make_unique<Disk>(rotating("hdd-laptop-7200", "2.5\" disk, 7200 rpm", size, 0, kIdle), parameters);
  disk->power() = PowerLadder(idle_steps(2.85, 2.11, kIdle), {});
  return disk;
}

// Seagate Constellation ES, 3.5", 500 GB (product manual): power and the outer rate. Its seeks were not found: those of the 2.5" one above.
std::unique_ptr<DeviceModel> desktop_disk(std::uint64_t size) {
  constexpr double kIdle = 1.50;
  SpindleParameters spindle = fast_laptop_spindle(size, kIdle);
  spindle.outer_rate = 140 * kMB;
  spindle.inner_rate = 70 * kMB;
  spindle.seek_watts = 6.45 - kIdle;
  spindle.read_watts = 6.45 - kIdle;
  spindle.write_watts = 5.32 - kIdle;
  spindle.turn_watts = 3.71 - kIdle;
  const DiskParameters parameters{.spindle = spindle, .interface_rate = 300 * kMB, .request = 100 * kUs, .cache_bytes = 32 * kMiB};
  auto disk = std::make_unique<Disk>(rotating("hdd-desktop", "3.5\" disk, 7200 rpm", size, 0, kIdle), parameters);
  disk->power() = PowerLadder(idle_steps(3.71, 2.82, kIdle), {});
  return disk;
}

// IBM/Hitachi Microdrive: seeks, rates and buffer from data sheets. Its power was not found: 1.1 W while it works fits the joules and
// seconds of P. Janda's figures, and what it draws at rest is a share of that which has to be varied.
std::unique_ptr<DeviceModel> small_disk(std::string_view name, std::uint64_t size, double idle_share) {
  constexpr double kActive = 1.1;
  const double idle = kActive * idle_share, work = kActive - idle;
  const DiskParameters parameters{
      .spindle = {.size = size, .rpm = 3600, .outer_rate = 7.2 * kMB, .inner_rate = 4.3 * kMB, .next_track = 2 * kMs,
                  .average_seek = 12 * kMs, .full_stroke = 19 * kMs, .write_settle = 1 * kMs, .seek_watts = work, .read_watts = work,
                  .write_watts = work, .turn_watts = work},
      .interface_rate = 16 * kMB, .request = 300 * kUs, .cache_bytes = 128 * 1024};
  auto disk = std::make_unique<Disk>(rotating(std::string(name), "1\" disk (Microdrive), 3600 rpm", size, 0, idle), parameters);
  disk->power() = PowerLadder({{PowerState::performance_idle, 0, idle, 0, 0}}, {});
  return disk;
}

std::unique_ptr<DeviceModel> microdrive(std::uint64_t size) { return small_disk("microdrive", size, 0.5); }
std::unique_ptr<DeviceModel> microdrive_25(std::uint64_t size) { return small_disk("microdrive-idle25", size, 0.25); }
std::unique_ptr<DeviceModel> microdrive_75(std::uint64_t size) { return small_disk("microdrive-idle75", size, 0.75); }

std::unique_ptr<DeviceModel> shingled_disk(std::uint64_t size) {
  SpindleParameters spindle = laptop_spindle(size);
  spindle.outer_rate = 140 * kMB;
  spindle.inner_rate = 70 * kMB;
  const ShingleParameters parameters{.spindle = spindle, .request = 100 * kUs, .band = 30 * kMiB, .cache_share = 0.01};
  return std::make_unique<ShingledDisk>(rotating("smr-dm", "shingled disk, drive-managed", size, 30 * kMiB, 0.55), parameters);
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {"sd-cheap", "SD card, block-mapped: units of 4 MiB, five open", cheap_card},
      {"usb-stick", "USB stick, block-mapped: units of 8 MiB, two open", usb_stick},
      {"usb-one", "USB stick, block-mapped: units of 4 MiB, one open", one_unit_stick},
      {"sd-tlc", "SD card, block-mapped: units of 12 MiB, two open, behind an SLC cache of a 64th", cached_card},
      {"card-bast", "card, hybrid mapping (BAST): 32 log blocks of 1 MiB", log_block_card},
      {"sd-a1", "SD card of application class A1, page-mapped", a1_card},
      {"sd-a2", "SD card of application class A2, page-mapped", a2_card},
      {"emmc", "eMMC, page-mapped", emmc},
      {"emmc-16k", "eMMC, page-mapped: erase blocks of 512 KiB, pages of 16 KiB that a flush fills up", paged_emmc},
      {"ssd-page", "SSD, page-mapped: erase blocks of 2 MiB, 7 % spare", page_ssd},
      {"ssd-queue", "ssd-page with ten requests at once", queued_ssd},
      {"ssd-qlc", "SSD, page-mapped: behind an SLC cache of a 24th; ten requests at once", cached_ssd},
      {"ssd-hybrid", "SSD, hybrid mapping (FAST): blocks of 512 KiB, 10 % spare", hybrid_ssd},
      {"hdd-laptop", "2.5\" disk, 5400 rpm, 8 MiB of cache", laptop_disk},
      {"hdd-laptop-7200", "2.5\" disk, 7200 rpm, 16 MiB of cache", fast_laptop_disk},
      {"hdd-desktop", "3.5\" disk, 7200 rpm, 32 MiB of cache", desktop_disk},
      {"microdrive", "1\" disk, 3600 rpm; at rest it draws half of what it does at work", microdrive},
      {"microdrive-idle25", "the same, but a quarter", microdrive_25},
      {"microdrive-idle75", "the same, but three quarters", microdrive_75},
      {"sfs-h", "SSD-H of SFS's table 1: units of 16 MiB", sfs_h},
      {"sfs-m", "SSD-M of SFS's table 1: units of 32 MiB", sfs_m},
      {"sfs-l", "SSD-L of SFS's table 1, a USB stick: units of 16 MiB", sfs_l},
      {"ftl-page", "SFS's flash, page-mapped, fewest valid pages first", ftl_page},
      {"ftl-page-age", "the same, with the age of blocks", ftl_page_age},
      {"ftl-page-raw", "ftl-page with 10 % of all as spare", ftl_page_raw},
      {"ftl-fast", "SFS's flash, hybrid mapping (FAST)", ftl_fast},
      {"ftl-fast-raw", "the same with 10 % of all as spare", ftl_fast_raw},
      {"smr-dm", "shingled disk, drive-managed: bands of 30 MiB, 1 % of cache", shingled_disk},
  };
  return entries;
}

std::unique_ptr<DeviceModel> make_model(std::string_view name, std::uint64_t size) {
  for (const CatalogueEntry& entry : catalogue())
    if (entry.name == name) return entry.make(size);
  return nullptr;
}

std::unique_ptr<DeviceModel> make_model_for(std::string_view name, std::uint64_t size) {
  std::uint64_t whole = size;
  if (name == "hdd-laptop") whole = 305152 * kMiB;  // 320 GB
  if (name == "hdd-laptop-7200" || name == "hdd-desktop") whole = 476928 * kMiB;  // 500 GB
  return make_model(name, std::max(size, whole));
}

}  // namespace varve::bench
