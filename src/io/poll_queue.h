// What queues without a ring share: watched descriptors, tasks from other threads, and sleeping in ppoll(2).
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "io/block_device.h"
#include "io/mailbox.h"

namespace varve::io {

class PollQueue : public IoQueue {
 public:
  unsigned poll() final;
  unsigned wait(std::int64_t timeout_ns) final;
  void watch(int fd, std::function<void()> readable) final;
  void unwatch(int fd) final;
  void post(std::function<void()> task) final { mailbox_.post(std::move(task)); }
  void wake() final { mailbox_.wake(); }

 protected:
  // Runs the callbacks of completed requests; returns how many.
  virtual unsigned reap() = 0;

  Mailbox mailbox_;

 private:
  struct Watch {
    int fd;
    std::function<void()> readable;
    bool removed = false;
  };

  unsigned run_ready() { return mailbox_.run() + reap(); }
  unsigned dispatch(std::int64_t timeout_ns);

  std::map<int, std::shared_ptr<Watch>> watches_;
  std::vector<pollfd> fds_;  // of the last ppoll(2): the mailbox, then firing_ in the same order
  std::vector<std::shared_ptr<Watch>> firing_;
};

}  // namespace varve::io
