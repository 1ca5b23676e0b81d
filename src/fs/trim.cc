// Discarding what is free.
#include "fs/engine.h"

namespace varve::fs {

// Clean segments are taken out of circulation while their discard is in flight (H31).
Result<std::uint64_t> Engine::trim(std::uint64_t start, std::uint64_t length, std::uint64_t minimum) {
  log::SegmentTable& segments = store_->segments();
  const auto& geometry = segments.geometry();
  const std::uint64_t segment_bytes = std::uint64_t{geometry.blocks} << kBlockShift;
  const io::Geometry& device = store_->device().geometry();
  if (start >= device.size_bytes || length < kBlockSize || minimum > segment_bytes) return Errc::invalid;
  if (!device.supports_discard)
    return Error(Errc::unsupported, "the device does not support discard");
  std::uint64_t trimmed = 0;
  for (std::uint64_t i = 0; i < geometry.count; ++i) {
    const std::uint64_t offset = geometry.start_of(SegmentId{i}).v << kBlockShift;
    if (offset < start || offset - start >= length || segment_bytes > length - (offset - start)) continue;
    if (segments.clean() <= store_->low_water()) break;  // these may be wanted any moment
    if (!segments.begin_discard(SegmentId{i})) continue;
    const Status status = store_->device().discard(offset, segment_bytes);
    segments.discarded(SegmentId{i});
    TRY(status);
    trimmed += segment_bytes;
  }
  return trimmed;
}

}  // namespace varve::fs
