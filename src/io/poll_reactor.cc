#include "io/poll_reactor.h"

#include <ctime>

#include "base/invariant.h"

namespace varve::io {

unsigned PollReactor::poll() {
  kick();
  unsigned ran = run_arrivals();
  if (!watches_.empty() || mailbox_.signalled()) ran += dispatch(0);
  return ran;
}

unsigned PollReactor::wait(std::int64_t timeout_ns) {
  kick();
  unsigned ran = run_arrivals();
  ran += dispatch(ran > 0 || has_arrivals() ? 0 : timeout_ns);
  mailbox_.take_wake();
  return ran;
}

void PollReactor::watch(int fd, std::function<void()> readable) {
  unwatch(fd);
  watches_[fd] = std::make_shared<Watch>(Watch{fd, std::move(readable)});
}

void PollReactor::unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  found->second->removed = true;
  watches_.erase(found);
}

// One ppoll(2) and the callbacks it calls for.
unsigned PollReactor::dispatch(std::int64_t timeout_ns) {
  std::vector<pollfd> fds = std::move(fds_);
  std::vector<std::shared_ptr<Watch>> firing = std::move(firing_);
  fds.assign(1, pollfd{mailbox_.fd(), POLLIN, 0});
  firing.clear();
  for (const auto& [fd, watch] : watches_) {
    fds.push_back(pollfd{fd, POLLIN, 0});
    firing.push_back(watch);
  }
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int ready = ::ppoll(fds.data(), fds.size(), timeout_ns < 0 ? nullptr : &timeout, nullptr);
  unsigned ran = 0;
  if (ready > 0) {
    if (fds[0].revents) mailbox_.drain();
    ran += run_arrivals();
    MEMORY_INVARIANT(fds.size() == firing.size() + 1);
    for (std::size_t i = 0; i < firing.size(); ++i) {
      if (!fds[i + 1].revents || firing[i]->removed) continue;
      firing[i]->readable();
      ++ran;
    }
  }
  firing.clear();
  fds_ = std::move(fds);
  firing_ = std::move(firing);
  return ran;
}

}  // namespace varve::io
