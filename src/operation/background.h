// Operations ask this of the work in the background. The room `jobs` does it.
#pragma once

#include "base/gate.h"

namespace varve::io {
class Reactor;
}

namespace varve::operation {

class Background {
 public:
  virtual ~Background() = default;
  // `space`: an operation waits for clean segments, so cleaning is worth another try. Any thread.
  virtual void request_checkpoint(bool space) = 0;
  // Does due work on the calling thread; for mounts without threads. False: there was nothing to do.
  virtual bool work(bool space_wanted) = 0;
  // After each successful operation. Costs little while the threads are awake anyway.
  virtual void after_operation(io::Reactor* reactor) EXCLUDES(the_gate) = 0;
};

}  // namespace varve::operation
