#include "jobs/sizes.h"

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/superblock_keeper.h"
#include "io/block_device.h"
#include "segments/segment_table.h"
#include "space/charge.h"

namespace varve::jobs {

namespace {
constexpr std::uint64_t kMibBlocks = (1u << 20) >> kBlockShift;
std::string mib_text(std::uint64_t blocks) { return fmt::format("{} MiB", divide_up(blocks, kMibBlocks)); }
}  // namespace

std::uint64_t Sizes::present() const { return parts_.superblocks.written().device_blocks; }
std::uint64_t Sizes::of_device() const { return parts_.device.geometry().blocks(); }
void Sizes::aim_at(std::uint64_t segments) { parts_.charge.aim_at(segments); }

std::uint64_t Sizes::segments_of(std::uint64_t blocks) const {
  const format::Superblock& super = parts_.superblocks.found();
  return format::segments_in(blocks, super.first_segment, super.segment_blocks);
}

// With so many segments, and the block behind them for the second copy.
std::uint64_t Sizes::least() const {
  std::uint64_t segments = 0;
  {
    const Gate::Pass pass(parts_.gate);
    segments = parts_.charge.fewest_segments();
  }
  const std::uint64_t blocks = std::max(parts_.segments.geometry().start_of(SegmentId{segments}).v + 1, format::kMinDeviceBlocks);
  return std::min(divide_up(blocks, kMibBlocks) * kMibBlocks, present());
}

Result<std::uint64_t> Sizes::make_room_for(std::uint64_t bytes) {
  io::BlockDevice& device = parts_.device;
  TRY(device.look_again());
  const std::uint64_t blocks = bytes ? block_of(bytes) : of_device();
  TRY(check(blocks));
  if (blocks <= of_device()) return blocks;
  const Status longer = device.set_length(blocks << kBlockShift);
  if (longer.fails_with(Errc::unsupported))
    return Error(Errc::invalid,
                 fmt::format("{} has {}, not {}: make the device larger first", device.name(), mib_text(of_device()), mib_text(blocks)));
  TRY(Status(longer));
  return blocks;
}

Status Sizes::cut_device(std::uint64_t blocks) {
  const Status cut = parts_.device.set_length(blocks << kBlockShift);
  return cut.fails_with(Errc::unsupported) ? Status() : cut;
}

Status Sizes::check(std::uint64_t blocks) const {
  if (blocks > format::kMaxAddress) return Error(Errc::invalid, "a filesystem has at most 1 EiB");
  const std::uint64_t segments = segments_of(blocks), least_blocks = least();
  if (blocks < format::kMinDeviceBlocks || segments < format::kFewestSegments)
    return Error(Errc::invalid, fmt::format("{} are too small: this filesystem needs {}", mib_text(blocks), mib_text(least_blocks)));
  const Gate::Pass pass(parts_.gate);
  if (blocks < present() && segments < parts_.charge.fewest_segments())
    return Error(Errc::no_space, fmt::format("what it holds does not fit in {}: the smallest possible size is {}", mib_text(blocks),
                                             mib_text(least_blocks)));
  return {};
}

}  // namespace varve::jobs
