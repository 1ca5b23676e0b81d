#include "space/discards.h"

#include <algorithm>
#include <memory>

#include "base/invariant.h"
#include "base/wait_list.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "io/request.h"
#include "segments/segment_table.h"

namespace varve::space {

namespace {
constexpr unsigned kMostInFlight = 2;  // one more than the device works at; the others leave it to reads and writes
}

struct Discards::Discard : io::IoRequest {
  Discards* discards;
  SegmentId first;
  std::uint64_t count;
  bool queued;
};

Discards::Discards(device::IoContext& io, segments::SegmentTable& segments, WaitList& waiters, bool wanted)
    : io_(io), segments_(segments), waiters_(waiters), wanted_(wanted && io.device().geometry().supports_discard) {}

std::optional<tree::DeadRuns> Discards::dead_runs() const {
  if (!wanted_) return std::nullopt;
  const io::Geometry& device = io_.device().geometry();
  const std::uint64_t unit = std::max<std::uint64_t>(device.discard_unit >> kBlockShift, 1);
  if (unit > segments_.geometry().blocks) return std::nullopt;  // no segment has such a hole
  return tree::DeadRuns(static_cast<std::uint32_t>(unit), device.before >> kBlockShift);
}

void Discards::send(SegmentId first, std::uint64_t count, const format::Run& run, bool queued) {
  auto discard = std::make_unique<Discard>();
  discard->discards = this;
  discard->first = first;
  discard->count = count;
  discard->queued = queued;
  discard->kind = io::IoKind::discard;
  discard->offset = run.start.v << kBlockShift;
  discard->length = std::uint64_t{run.blocks} << kBlockShift;
  discard->done = [](io::IoRequest& request) {
    const std::unique_ptr<const Discard> over(static_cast<Discard*>(&request));
    Discards& discards = *over->discards;
    discards.came(over->first, over->count);
    if (!over->queued) return;
    {
      const Lock lock(discards.mutex_);
      if (INVARIANT(discards.in_flight_ > 0)) --discards.in_flight_;
    }
    discards.send_queued();
  };
  discard->abandoned = [](io::IoRequest& request) { delete static_cast<Discard*>(&request); };
  io_.start(*discard);
  (void)discard.release();
}

void Discards::start(const std::vector<SegmentId>& freed, const std::vector<format::Run>& dead, std::uint64_t settled) {
  if (!wanted_) return;
  start_segments(freed);
  {
    const Lock lock(mutex_);
    for (const format::Run& run : dead) queue_.push_back({run, settled});
    while (queue_.size() > tree::DeadRuns::kMost) queue_.pop_front();
  }
  send_queued();
}

void Discards::start_segments(const std::vector<SegmentId>& freed) {
  constexpr std::uint64_t kMaxBytes = 1u << 30;
  const auto& geometry = segments_.geometry();
  const std::uint64_t most = std::max<std::uint64_t>(kMaxBytes / kBlockSize / geometry.blocks, 1);
  for (std::size_t begin = 0; begin < freed.size();) {
    std::size_t end = begin + 1;
    while (end < freed.size() && freed[end].v == freed[begin].v + (end - begin) && end - begin < most) ++end;
    INVARIANT(begin == 0 || freed[begin - 1] < freed[begin]);
    const std::uint64_t count = end - begin;
    send(freed[begin], count, {geometry.start_of(freed[begin]), static_cast<std::uint32_t>(count * geometry.blocks)}, false);
    begin = end;
  }
}

void Discards::came(SegmentId first, std::uint64_t count) {
  bool any_clean = false;
  for (std::uint64_t i = 0; i < count; ++i) any_clean |= segments_.discarded(SegmentId{first.v + i});
  if (any_clean) waiters_.wake();
}

std::optional<Discards::Waiting> Discards::next() {
  const Lock lock(mutex_);
  if (queue_.empty() || in_flight_ >= kMostInFlight) {
    sending_ = false;
    return std::nullopt;
  }
  const Waiting first = queue_.front();
  queue_.pop_front();
  return first;
}

// One thread at a time, and never from inside itself: a request may complete before its start has returned.
void Discards::send_queued() {
  {
    const Lock lock(mutex_);
    if (sending_) return;
    sending_ = true;
  }
  while (const auto waiting = next()) {
    const auto& geometry = segments_.geometry();
    if (!geometry.contains(waiting->run.start)) continue;  // the filesystem ends before it by now
    const SegmentId segment = geometry.segment_of(waiting->run.start);
    if (!segments_.begin_discard(segment, waiting->settled)) continue;
    {
      const Lock lock(mutex_);
      ++in_flight_;
    }
    send(segment, 1, waiting->run, true);
  }
}

}  // namespace varve::space
