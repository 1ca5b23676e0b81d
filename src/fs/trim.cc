// Discarding what is free.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/engine.h"

namespace varve::fs {

namespace {

// How many segments at once: nobody can have them meanwhile, so that most of what is clean must be left.
std::uint64_t most_at_once(std::uint64_t clean, std::uint64_t low_water, std::uint64_t segment_bytes) {
  constexpr std::uint64_t kMostBytes = 256u << 20;
  const std::uint64_t spare = clean - std::min(clean, low_water);
  return std::clamp<std::uint64_t>(kMostBytes / segment_bytes, 1, std::max<std::uint64_t>(1, spare / 8));
}

Status account(Trim& trim, std::uint64_t segment_bytes) {
  if (trim.error) return Error(errc_from_errno(trim.error), fmt::format("discarding {} segments failed", trim.count));
  trim.trimmed += std::exchange(trim.count, 0) * segment_bytes;
  trim.started = false;
  return {};
}

}  // namespace

// A device may take minutes for all of it, and the calling thread has others to serve: some neighbours at a time are waited
// for, as for a read.
Result<std::uint64_t> Engine::trim(Operation& operation, std::uint64_t start, std::uint64_t length, std::uint64_t minimum) {
  log::SegmentTable& segments = store_->segments();
  const auto& geometry = segments.geometry();
  const std::uint64_t segment_bytes = std::uint64_t{geometry.blocks} << kBlockShift;
  const io::Geometry& device = store_->device().geometry();
  if (start >= device.size_bytes || length < kBlockSize || minimum > segment_bytes) return Errc::invalid;
  if (!device.supports_discard)
    return Error(Errc::unsupported, "the device does not support discard");
  Trim& trim = operation.wait().trim;
  TRY(account(trim, segment_bytes));
  const std::uint64_t low_water = store_->low_water();
  const std::uint64_t most = most_at_once(segments.clean(), low_water, segment_bytes);
  const auto take = [&](SegmentId segment) {
    const std::uint64_t offset = geometry.start_of(segment).v << kBlockShift;
    if (offset < start || offset - start >= length || segment_bytes > length - (offset - start)) return false;
    return segments.clean() > low_water && segments.begin_discard(segment);  // the last may be wanted any moment
  };
  for (; trim.next < geometry.count && trim.count < most; ++trim.next) {
    if (take(SegmentId{trim.next})) ++trim.count;
    else if (trim.count) break;
  }
  if (trim.count) return Errc::would_block;
  return trim.trimmed;
}

// They are out of circulation while their discard is in flight (H31).
void Engine::start_discard(Trim& trim, std::function<void()> came) {
  const auto& geometry = store_->segments().geometry();
  const SegmentId first{trim.next - trim.count};
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::discard;
  request->offset = geometry.start_of(first).v << kBlockShift;
  request->length = trim.count * geometry.blocks << kBlockShift;
  trim.started = true;
  store_->io().start(std::move(request), [this, &trim, first, came = std::move(came)](int error) {
    for (std::uint64_t i = 0; i < trim.count; ++i) store_->segments().discarded(SegmentId{first.v + i});
    trim.error = error;
    came();
  });
}

}  // namespace varve::fs
