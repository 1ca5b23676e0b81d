#include "operation/trimmer.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/invariant.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "io/reactor.h"
#include "io/request.h"
#include "operation/operation.h"
#include "operation/wait.h"
#include "segments/segment_table.h"
#include "space/admission.h"
#include "space/discards.h"
#include "space/space.h"

namespace varve::operation {

namespace {

// How many segments at once: nobody can have them meanwhile, so that most of what is clean must be left.
std::uint64_t most_at_once(std::uint64_t spare, std::uint64_t segment_bytes) {
  constexpr std::uint64_t kMostBytes = 256u << 20;
  return std::min(spare, std::clamp<std::uint64_t>(kMostBytes / segment_bytes, 1, std::max<std::uint64_t>(1, spare / 8)));
}

Status account(Trim& trim, std::uint64_t segment_bytes) {
  if (trim.error) return Error(errc_from_errno(trim.error), fmt::format("discarding {} failed", counted(trim.count, "segment")));
  INVARIANT(trim.count == 0 || trim.started);
  trim.trimmed += std::exchange(trim.count, 0) * segment_bytes;
  trim.started = false;
  return {};
}

}  // namespace

// A device may take minutes for all of it, and the calling thread has others to serve: some neighbours at a time are waited
// for, as for a read.
Result<std::uint64_t> Trimmer::trim(Operation& operation, std::uint64_t start, std::uint64_t length, std::uint64_t minimum) {
  segments::SegmentTable& segments = parts_.segments;
  const auto& geometry = segments.geometry();
  const std::uint64_t segment_bytes = std::uint64_t{geometry.blocks} << kBlockShift;
  const io::Geometry& device = parts_.io.device().geometry();
  if (start >= device.size_bytes || length < kBlockSize || minimum > segment_bytes) return Errc::invalid;
  if (!device.supports_discard)
    return Error(Errc::unsupported, "the device does not support discard");
  Trim& trim = operation.wait().made_steps().trim;
  TRY(account(trim, segment_bytes));
  const auto is_wanted = [&](SegmentId segment) {
    const std::uint64_t offset = geometry.start_of(segment).v << kBlockShift;
    if (offset < start || offset - start >= length || segment_bytes > length - (offset - start)) return false;
    return segments.info(segment).state == segments::SegmentState::clean;
  };
  if (is_taken_.exchange(true)) {  // several at the same time would share out what most_at_once() leaves
    trim.for_turn = true;
    return Errc::would_block;
  }
  for (bool any_to_spare = true; any_to_spare && trim.next < segments.geometry().count;) {
    while (trim.next < segments.geometry().count && !is_wanted(SegmentId{trim.next})) ++trim.next;
    any_to_spare = take_neighbours(trim, is_wanted, segment_bytes);
    if (trim.count) return Errc::would_block;  // the turn is given back when they are discarded
  }
  INVARIANT(trim.count == 0);
  give_back();
  return trim.trimmed;
}

// All are called: the first may find that nothing is left for it to do.
void Trimmer::give_back() {
  INVARIANT(is_taken_);
  is_taken_ = false;
  waiting_.wake();
}

// The gate is closed so that no operation is let in meanwhile that counts on what is taken here. False: there is none to take.
bool Trimmer::take_neighbours(Trim& trim, const std::function<bool(SegmentId)>& is_wanted, std::uint64_t segment_bytes) {
  segments::SegmentTable& segments = parts_.segments;
  const Gate::Closure closed(parts_.gate);
  const std::uint64_t most = most_at_once(parts_.space.spare_segments(), segment_bytes);
  for (; trim.next < segments.geometry().count && trim.count < most; ++trim.next, ++trim.count)
    if (!is_wanted(SegmentId{trim.next}) || !segments.begin_discard(SegmentId{trim.next})) break;
  return most > 0;
}

// They are out of circulation while their discard is in flight (H31).
void Trimmer::start_discard(Trim& trim, io::Reactor* reactor, std::function<void()> came) {
  const auto& geometry = parts_.segments.geometry();
  const SegmentId first{trim.next - trim.count};
  INVARIANT(!trim.started && trim.count > 0 && trim.count <= trim.next);
  trim.started = true;
  const auto done = [this, &trim, first, came = std::move(came)](int error) {
    parts_.discards.came(first, trim.count);
    trim.error = error;
    give_back();
    came();
  };
  auto* const request = new io::IoRequest;
  request->kind = io::IoKind::discard;
  request->offset = geometry.start_of(first).v << kBlockShift;
  request->length = trim.count * geometry.blocks << kBlockShift;
  request->done = [done](io::IoRequest& finished) {
    const auto call = done;  // goes with the request
    const int error = finished.error;
    delete &finished;
    call(error);
  };
  request->abandoned = [](io::IoRequest& finished) { delete &finished; };
  parts_.io.start(*request, reactor);
}

}  // namespace varve::operation
