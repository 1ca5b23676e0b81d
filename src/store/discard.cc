// Telling the device what a checkpoint has made free (store.h).
#include "store/store.h"

namespace varve::store {

namespace {

struct Discard : io::IoRequest {
  Store* store;
  SegmentId first;
  std::uint64_t count;
};

}  // namespace

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
    auto discard = std::make_unique<Discard>();
    discard->store = this;
    discard->first = freed[begin];
    discard->count = end - begin;
    discard->kind = io::IoKind::discard;
    discard->offset = geometry.start_of(freed[begin]).v << kBlockShift;
    discard->length = (end - begin) * segment_bytes;
    discard->done = [](io::IoRequest& request) {
      const std::unique_ptr<const Discard> over(static_cast<Discard*>(&request));
      over->store->discarded(over->first, over->count);
    };
    discard->abandoned = [](io::IoRequest& request) { delete static_cast<Discard*>(&request); };
    io_.start(*discard);
    (void)discard.release();
    begin = end;
  }
}

void Store::discarded(SegmentId first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) segments_.discarded(SegmentId{first.v + i});
  wake_waiters();
}

}  // namespace varve::store
