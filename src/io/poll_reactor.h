// A reactor without a ring: sleeps in ppoll(2).
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "io/reactor.h"

namespace varve::io {

class PollReactor : public Reactor {
 public:
  PollReactor() = default;
  ~PollReactor() override { abandon_all(); }

  void kick() override { note_owner(); }
  unsigned poll() override;
  unsigned wait(std::int64_t timeout_ns) override;
  void watch(int fd, std::function<void()> readable) override;
  void unwatch(int fd) override;

 private:
  struct Watch {
    int fd;
    std::function<void()> readable;
    bool removed = false;
  };

  unsigned dispatch(std::int64_t timeout_ns);

  std::map<int, std::shared_ptr<Watch>> watches_;
  std::vector<pollfd> fds_;  // of the last ppoll(2): the mailbox, then firing_ in the same order
  std::vector<std::shared_ptr<Watch>> firing_;
};

}  // namespace varve::io
