#include "changes/stream_order.h"

#include <algorithm>

namespace varve::changes {

StreamOrder::Stream& StreamOrder::stream_of(Ino ino) {
  const auto found = std::ranges::find(streams_, ino, &Stream::ino);
  if (found != streams_.end()) return *found;
  Stream& fresh = streams_.at(next_);
  next_ = (next_ + 1) % streams_.size();
  return fresh = {.ino = ino, .begin = 0, .end = 0, .count = 0};
}

void StreamOrder::note(Ino ino, std::uint64_t block) {
  Stream& stream = stream_of(ino);
  const bool begins = stream.end == 0 || block > stream.end + kFar;
  if (begins) stream = {.ino = ino, .begin = block, .end = block, .count = 0};
  if (block < stream.begin) return;  // too late, or written again
  stream.end = std::max(stream.end, block + 1);
  ++stream.count;
}

void StreamOrder::seal() {
  for (Stream& stream : streams_) {
    stream.begin = stream.end;
    stream.count = 0;
  }
}

bool StreamOrder::has_gap() const {
  return std::ranges::any_of(streams_, [](const Stream& stream) { return stream.end - stream.begin > stream.count; });
}

}  // namespace varve::changes
