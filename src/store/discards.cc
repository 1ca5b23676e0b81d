#include "store/discards.h"

#include <memory>

#include "base/invariant.h"

namespace varve::store {

struct Discards::Discard : io::IoRequest {
  Discards* discards;
  SegmentId first;
  std::uint64_t count;
};

void Discards::start(const std::vector<SegmentId>& freed) {
  constexpr std::uint64_t kMaxBytes = 1u << 30;
  const auto& geometry = segments_.geometry();
  const std::uint64_t segment_bytes = std::uint64_t{geometry.blocks} << kBlockShift;
  for (std::size_t begin = 0; begin < freed.size();) {
    std::size_t end = begin + 1;
    while (end < freed.size() && freed[end].v == freed[begin].v + (end - begin) && (end - begin) * segment_bytes < kMaxBytes)
      ++end;
    INVARIANT(begin == 0 || freed[begin - 1] < freed[begin]);
    auto discard = std::make_unique<Discard>();
    discard->discards = this;
    discard->first = freed[begin];
    discard->count = end - begin;
    discard->kind = io::IoKind::discard;
    discard->offset = geometry.start_of(freed[begin]).v << kBlockShift;
    discard->length = (end - begin) * segment_bytes;
    discard->done = [](io::IoRequest& request) {
      const std::unique_ptr<const Discard> over(static_cast<Discard*>(&request));
      over->discards->came(over->first, over->count);
    };
    discard->abandoned = [](io::IoRequest& request) { delete static_cast<Discard*>(&request); };
    io_.start(*discard);
    (void)discard.release();
    begin = end;
  }
}

void Discards::came(SegmentId first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) segments_.discarded(SegmentId{first.v + i});
  waiters_.wake();
}

}  // namespace varve::store
