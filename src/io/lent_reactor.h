// A reactor for a thread that waits for what it submits and has none at hand. The thread keeps it for the next time: a ring costs
// a hundred microseconds to make.
#pragma once

#include <memory>

#include "io/reactor.h"

namespace varve::io {

// Belongs to the thread that makes it. Throws as Reactor::make().
class LentReactor {
 public:
  LentReactor();
  ~LentReactor();
  LentReactor(const LentReactor&) = delete;
  LentReactor& operator=(const LentReactor&) = delete;

  Reactor& operator*() const { return *reactor_; }
  Reactor* operator->() const { return reactor_.get(); }

 private:
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace varve::io
