// A process that does what is left to do where this one is killed.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/descriptor.h"

namespace varve::tool {

class Successor {
 public:
  // `task` is called in the other process, if this one ends before release(); `meanwhile` every 15 seconds until then. Where no process can
  // be had nothing is done, then.
  explicit Successor(const std::function<void()>& task, const std::function<void()>& meanwhile = {});
  ~Successor() { release(); }
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  void release();

 private:
  Descriptor alive_;  // the other process reads there: a byte says that all is done
  pid_t process_ = -1;
};

}  // namespace varve::tool
