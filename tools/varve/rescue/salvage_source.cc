#include "varve/rescue/salvage_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/buffer.h"
#include "checkpoint/superblocks.h"
#include "control/place.h"
#include "format/make.h"
#include "remote/open_device.h"
#include "repair/rebuild.h"
#include "repair/superblock_search.h"
#include "shared/recovery.h"

namespace varve::tool {

namespace {

// Memory is needed for every block that a superblock tells of, there or not. One that tells of so many times more than
// there is would be of no use anyway: hardly a tree is whole.
constexpr std::uint64_t kMostTimesLarger = 1024;

// The device itself stays as it is, so that nothing is given up.
const repair::RepairOptions kOnACopy{.search = true, .cut_unreadable_log = true};

// How large the filesystem is according to the superblock in this block; 0 without one.
std::uint64_t blocks_told_by(io::BlockDevice& device, std::uint64_t block) {
  AlignedBuffer buffer(kBlockSize);
  if (!device.read(block * kBlockSize, buffer.span()).ok()) return 0;
  const auto super = format::decode_superblock(buffer.span());
  return super.ok() ? super->device_blocks : 0;
}

// How large the filesystem once was: the device may be cut off. 0: not known.
Result<std::uint64_t> blocks_of(io::BlockDevice& device) {
  const std::uint64_t there = device.geometry().blocks();
  if (there == 0) return std::uint64_t{0};
  std::uint64_t told = blocks_told_by(device, 0);
  if (told == 0 && blocks_told_by(device, there - 1) != there) told = repair::blocks_told_by_images(device);
  if (told / kMostTimesLarger > there)
    return Error(Errc::invalid, fmt::format("{}: its superblock tells of {} blocks, and only {} are there: too little to begin with",
                                            device.name(), told, there));
  return told;
}

// The same filesystem with more segments at its end, as many as new trees and the engine may need.
format::Superblock enlarge(const format::Superblock& super) {
  format::Superblock larger = super;
  larger.segments += super.segments / 4 + 32;
  larger.device_blocks = super.first_segment.v + larger.segments * super.segment_blocks + 1;
  // Stored clocks count in units, which grow with the filesystem: none may be in the future.
  const std::uint64_t unit = std::max<std::uint64_t>(super.clock_unit, 1);
  larger.clock_unit = format::clock_unit_of(larger.device_blocks);
  larger.clock = (super.clock / unit + 1) * std::max(unit, larger.clock_unit);
  return larger;
}

}  // namespace

// Users, or damaged maps, have left no free block. Beyond the end of the device there are some, as nobody writes there.
Status SalvageSource::repair_with_more_room() {
  io::BlockDevice& full = whole_->changed;
  auto before = check::check(full, {});
  format::Superblock larger = enlarge(TRY(checkpoint::read_superblocks(full)).best);
  enlarged_ = std::make_unique<Layer>(full, larger.device_blocks);
  TRY(checkpoint::restore_superblocks(enlarged_->changed, larger, [this] { return enlarged_->changed.flush(); }));
  outcome_ = TRY(repair::repair(enlarged_->changed, recover, kOnACopy));
  if (before.ok()) outcome_.before = std::move(before).value();
  return outcome_.ended;
}

Status SalvageSource::repair() {
  auto done = repair::repair(whole_->changed, recover, kOnACopy);
  const Status ended = done.ok() ? done->ended : Status(done.error());
  if (ended.fails_with(Errc::no_space)) return repair_with_more_room();
  if (done.ok()) outcome_ = std::move(done).value();
  return ended;
}

// After a repair that has failed, whatever the newest trees show.
Status SalvageSource::mount(const std::string& snapshot) {
  fs::Options options;
  options.read_only = true;
  options.no_recovery = !failure_.empty();
  options.snapshot = snapshot;
  options.background = options.cleaner = false;
  filesystem_ = TRY(fs::Filesystem::mount(enlarged_ ? enlarged_->changed : whole_->changed, options));
  return {};
}

Result<std::unique_ptr<SalvageSource>> SalvageSource::open(const std::string& path, const std::string& snapshot) {
  spdlog::set_level(spdlog::level::off);  // damage is what is expected here
  auto device = TRY(remote::open_device(TRY(control::find_unmounted(path)), {.access = io::Access::read_only}));
  std::unique_ptr<SalvageSource> source(new SalvageSource(std::move(device)));
  const auto blocks = TRY(blocks_of(*source->device_));
  source->whole_ = std::make_unique<Layer>(*source->device_, blocks);
  const Status repaired = source->repair();
  if (!repaired.ok()) source->failure_ = repaired.error().message();
  if (const Status mounted = source->mount(snapshot); !mounted.ok())
    return repaired.ok() || !snapshot.empty() ? mounted.error() : repaired.error();
  return source;
}

}  // namespace varve::tool
