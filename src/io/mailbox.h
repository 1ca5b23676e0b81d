// Tasks and wake-ups from other threads to the owner of a queue, with an eventfd that becomes readable for both.
//
// The flag `signalled_` saves the system call when the owner has been told already. Order matters: the owner takes the
// eventfd's count first, then clears the flag, then looks at the tasks; a sender adds its task first and then the flag. Each side
// looks at what the other one has written, so all four are sequentially consistent: an acquiring load may pass the store before it.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace varve::io {

class Mailbox {
 public:
  // Throws std::system_error when the process has no descriptor left.
  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread.
  void post(std::function<void()> task);
  void wake();
  void signal();  // only makes the descriptor readable

  // The owner only.
  int fd() const { return fd_; }
  bool signalled() const { return signalled_.load(); }
  bool has_tasks() const { return has_tasks_.load(); }
  bool has_wake() const { return woken_.load(); }
  void drain();        // takes the descriptor's count and clears the flag
  void acknowledge();  // clears the flag when something else (a ring) took the count
  unsigned run();      // runs the tasks posted so far, all of them even if one throws
  bool take_wake() { return woken_.load() && woken_.exchange(false); }

 private:
  int fd_;
  std::atomic<bool> signalled_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> has_tasks_{false};
  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ GUARDED_BY(mutex_);
};

}  // namespace varve::io
