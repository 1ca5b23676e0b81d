// Telling the device what a checkpoint has made free. Thread-safe.
#pragma once

#include <vector>

#include "log/io_context.h"
#include "log/segment_table.h"
#include "store/waiters.h"

namespace varve::store {

class Discards {
 public:
  Discards(log::IoContext& io, log::SegmentTable& segments, Waiters& waiters, bool wanted)
      : io_(io), segments_(segments), waiters_(waiters), wanted_(wanted && io.device().geometry().supports_discard) {}

  bool wanted() const { return wanted_; }
  // Of segments that SegmentTable holds back until their discard has come, in ascending order. Neighbours go in one request.
  // A discard is a hint: whether it succeeds does not matter.
  void start(const std::vector<SegmentId>& freed);
  // So many neighbours have been discarded: they can be handed out.
  void came(SegmentId first, std::uint64_t count);

 private:
  struct Discard;

  log::IoContext& io_;
  log::SegmentTable& segments_;
  Waiters& waiters_;
  const bool wanted_;
};

}  // namespace varve::store
