// Tools that read automatic snapshots, and need them to their end (docs/design.md, "Snapshots that come and go"). What they read is
// not given up meanwhile, and what it holds alone is charged. A tool that was killed is forgotten: nobody asks again in its name.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace varve::snapshots {
class Snapshots;
}

namespace varve::space {
class Charge;
}

namespace varve::checkpoint {

class Readers {  // any thread, if not said otherwise
 public:
  struct Parts {
    Gate& gate;
    Clock& clock;
    snapshots::Snapshots& snapshots;
    space::Charge& charge;
  };
  explicit Readers(const Parts& parts) : parts_(parts) {}

  // `reader` is a number of the tool's own. From now on for so many seconds, also if it has asked before; 0: no more. Errc::stale: the
  // snapshot has gone, or is going; Errc::no_space: users have filled so much that what it holds alone cannot be charged.
  Status hold(Serial snapshot, std::uint64_t reader, std::uint64_t seconds) EXCLUDES(the_gate);
  std::vector<Serial> held();  // may be one of them twice
  // How many automatic snapshots there are that can be given up.
  std::size_t expendable();
  // The thread that makes checkpoints, inside its freeze: these go.
  void note_leaving(std::vector<Serial> leaving) REQUIRES(the_gate);
  // What they hold may be other now, or some have ended: the charge is told, but not while somebody is at the freeze.
  void count() EXCLUDES(mutex_);
  bool forget_ended() REQUIRES_SHARED(the_gate);  // true: there were some

 private:
  struct Reader {
    Serial snapshot;
    std::uint64_t number = 0, until_ns = 0;
  };
  std::vector<Serial> held_now() const REQUIRES(mutex_);
  bool erase_ended() REQUIRES(mutex_);
  void charge() REQUIRES(mutex_);
  Status begin(Serial snapshot) REQUIRES(mutex_) REQUIRES_SHARED(the_gate);

  const Parts parts_;
  Mutex mutex_{LockRank::snapshot_readers};
  std::vector<Reader> readers_ GUARDED_BY(mutex_);
  std::vector<Serial> leaving_ GUARDED_BY(mutex_);  // since the last freeze
};

}  // namespace varve::checkpoint
