#include "io/lent_reactor.h"

#include <unistd.h>

#include <utility>
#include <vector>

namespace varve::io {

namespace {

// Those that the thread does not use now. None is given up before the thread ends: a ring that goes interrupts the system calls of
// the threads that have used it.
struct Shelf {
  pid_t process = ::getpid();
  std::vector<std::unique_ptr<Reactor>> idle;
};
thread_local Shelf shelf;
constexpr std::size_t kMostIdle = 8;  // more than a thread ever uses at a time

// A process that has forked must not touch what its parent made.
void leave_to_parent() {
  if (shelf.process == ::getpid()) return;
  for (auto& reactor : shelf.idle) (void)reactor.release();
  shelf = {};
}

}  // namespace

LentReactor::LentReactor() {
  leave_to_parent();
  if (shelf.idle.empty()) {
    shelf.idle.reserve(kMostIdle);  // giving it back needs no memory
    reactor_ = Reactor::make();
    return;
  }
  reactor_ = std::move(shelf.idle.back());
  shelf.idle.pop_back();
}

LentReactor::~LentReactor() {
  if (reactor_->in_flight() == 0 && shelf.idle.size() < kMostIdle) shelf.idle.push_back(std::move(reactor_));
}

}  // namespace varve::io
