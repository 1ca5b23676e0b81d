// A filesystem that gets another size while it is used.
//
// It grows at one checkpoint. To shrink, it leaves its end first: nothing is handed out there any more (retreat()), and what lives
// there is moved (cleaner/strategy/leaving.cc), in as many steps as there is room for. When nothing is left there, a checkpoint
// gives it the new size (CheckpointRequest::device_blocks). Until then a crash, or stay(), leaves all as it was.
//
// For the thread that makes checkpoints.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/gate.h"
#include "space/space.h"

namespace varve::device {
class Faults;
}

namespace varve::checkpoint {

class Checkpoints;
class Sealer;

class Reshaping {
 public:
  struct Parts {
    Gate& gate;
    Clock& clock;
    device::Faults& faults;
    segments::SegmentTable& segments;
    log::Log& log;
    const tree::Trees& trees;
    const space::Space& space;
    Sealer& sealer;
    Checkpoints& checkpoints;
  };
  explicit Reshaping(const Parts& parts) : parts_(parts) {}

  // From now on nothing stands open at or beyond `limit` (a segment), and nothing comes there. False: what is needed now might not find
  // room below, and nothing has changed. Errors have made the filesystem read-only.
  Result<bool> retreat(std::uint64_t limit, space::Space::Margin margin) EXCLUDES(the_gate);
  // The lowest limit that retreat() accepts if nothing comes between, not below `aim`; that of now, if there is none. As few segments are
  // left at once as a checkpoint can well clear in the reverse map.
  std::uint64_t next_limit(std::uint64_t aim, space::Space::Margin margin) EXCLUDES(the_gate);
  // All segments are as good as any again.
  void stay() EXCLUDES(the_gate);

 private:
  Result<bool> retreat_closed(std::uint64_t limit, space::Space::Margin margin) REQUIRES(the_gate);
  Result<bool> close_and_retreat(std::uint64_t limit, space::Space::Margin margin) EXCLUDES(the_gate);

  const Parts parts_;
};

}  // namespace varve::checkpoint
