// A reactor over one io_uring: entries, watched descriptors and the mailbox all wake the same wait().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "io/reactor.h"
#include "io/ring.h"
#include "io/spinner.h"

namespace varve::io {

class RingReactor : public Reactor {
 public:
  explicit RingReactor(Ring ring) : ring_(std::move(ring)) {}
  ~RingReactor() override;

  void kick() override;
  unsigned poll() override;
  unsigned wait(std::int64_t timeout_ns) override;
  void may_spin(bool may) override { may_spin_ = may; }
  void watch(int fd, std::function<void()> readable) override;
  void unwatch(int fd) override;
  bool has_ring() const override { return true; }
  void submit(RingEntry& entry) override { backlog_.push_back(entry); }

 private:
  // Aligned, so that the low bits of its address are free for a tag.
  struct alignas(16) Watch {
    int fd;
    std::function<void()> readable;
    bool armed = false;
    bool removed = false;
  };
  enum Tag : std::uint64_t { kEntry, kWatch, kMailbox, kIgnored, kTagMask = 7 };
  struct Completion {
    std::uint64_t data;
    int result;
  };

  void enable();
  io_uring_sqe* next_entry();
  void fill();
  void arm_watches();
  void submit_entries();
  void spin();
  void sleep(std::int64_t timeout_ns);

  unsigned reap();
  unsigned handle(const Completion& completion);
  unsigned handle_entry(RingEntry& entry, int result);
  unsigned handle_watch(Watch& watch, int result);

  std::uint64_t mailbox_count_ = 0;  // where the ring reads the mailbox's eventfd
  Ring ring_;
  bool enabled_ = false;
  bool mailbox_armed_ = false;
  bool may_spin_ = false;
  Spinner spinner_;

  std::size_t in_ring_ = 0;  // entries the ring holds; never more than it has room for
  boost::intrusive::slist<RingEntry, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>> backlog_;

  std::map<int, std::shared_ptr<Watch>> watches_;
  std::vector<std::shared_ptr<Watch>> to_arm_;
  std::vector<std::shared_ptr<Watch>> leaving_;  // removed, but the ring still knows them
};

}  // namespace varve::io
