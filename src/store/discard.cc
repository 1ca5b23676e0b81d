// Telling the device what a checkpoint has made free (store.h).
#include "store/store.h"

namespace varve::store {

bool Store::wants_discard() {
  // Where space is short, a segment is wanted at once: it stays out of circulation while its discard is in flight.
  return options_.discard && device_.geometry().supports_discard && segments_.clean() > low_water() + 2;
}

// Neighbouring segments go in one request. A discard is a hint: whether it succeeds does not matter.
void Store::start_discards(const std::vector<SegmentId>& freed) {
  constexpr std::uint64_t kMaxBytes = 1u << 30;
  const auto& geometry = segments_.geometry();
  const std::uint64_t segment_bytes = std::uint64_t{geometry.blocks} << kBlockShift;
  for (std::size_t begin = 0; begin < freed.size();) {
    std::size_t end = begin + 1;
    while (end < freed.size() && freed[end].v == freed[begin].v + (end - begin) && (end - begin) * segment_bytes < kMaxBytes)
      ++end;
    auto request = std::make_unique<io::IoRequest>();
    request->kind = io::IoKind::discard;
    request->offset = geometry.start_of(freed[begin]).v << kBlockShift;
    request->length = (end - begin) * segment_bytes;
    io_.start(std::move(request), [this, first = freed[begin], count = end - begin](int) { discarded(first, count); });
    begin = end;
  }
}

void Store::discarded(SegmentId first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) segments_.discarded(SegmentId{first.v + i});
  wake_waiters();
}

}  // namespace varve::store
