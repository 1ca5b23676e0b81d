// A queue over one io_uring: requests, watched descriptors and the mailbox all wake the same wait().
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "io/mailbox.h"
#include "io/request.h"
#include "io/ring.h"
#include "io/spinner.h"
#include "io/uring_device.h"

namespace varve::io {

class UringQueue : public IoQueue, private CompletionSink {
 public:
  UringQueue(UringDevice& device, Ring ring);
  ~UringQueue() override;

  void submit(IoRequest& request) override;
  void kick() override;
  unsigned poll() override;
  unsigned wait(std::int64_t timeout_ns) override;
  void may_spin(bool may) override { may_spin_ = may; }
  std::size_t in_flight() const override { return in_flight_; }
  void watch(int fd, std::function<void()> readable) override;
  void unwatch(int fd) override;
  void post(std::function<void()> task) override { mailbox_.post(std::move(task)); }
  void wake() override { mailbox_.wake(); }

 private:
  // A request on its way through the ring. Aligned, so that the low bits of its address are free for a tag.
  struct alignas(16) Operation {
    Transfer transfer;
  };
  struct alignas(16) Watch {
    int fd;
    std::function<void()> readable;
    bool armed = false;
    bool removed = false;
  };
  enum Tag : std::uint64_t { kOperation, kWatch, kMailbox, kIgnored, kTagMask = 15 };
  struct Completion {
    std::uint64_t data;
    int result;
  };

  void enable();
  io_uring_sqe* next_entry();
  void fill();
  bool prepare(Operation& operation);
  void hand_to_pool(IoRequest& request);
  void prepare_discard(io_uring_sqe* entry, const IoRequest& request);
  void arm_watches();
  void submit_entries();
  void spin();
  void sleep(std::int64_t timeout_ns);

  unsigned run_rejected();
  unsigned reap();
  unsigned handle(const Completion& completion);
  unsigned handle_operation(Operation& operation, int result);
  unsigned handle_watch(Watch& watch, int result);
  void finish(Operation& operation, int error);
  bool falls_back_to_pool(const IoRequest& request, int result) const;
  void finished(IoRequest& request) override;  // by a pool thread

  Operation& make_operation(IoRequest& request);

  UringDevice& device_;
  Mailbox mailbox_;
  std::uint64_t mailbox_count_ = 0;  // where the ring reads the mailbox's eventfd
  Ring ring_;                        // after the mailbox: goes first
  bool enabled_ = false;
  bool mailbox_armed_ = false;
  bool may_spin_ = false;
  Spinner spinner_;

  std::size_t in_flight_ = 0;  // for the user
  std::size_t in_ring_ = 0;    // operations the ring holds; never more than its entries
  std::size_t in_pool_ = 0;    // discards the pool does
  std::deque<Operation*> backlog_;
  std::vector<IoRequest*> rejected_;  // broke the contract; completed by the next poll() or wait()
  std::deque<Operation> operations_;  // all that were ever needed
  std::vector<Operation*> unused_;

  std::map<int, std::shared_ptr<Watch>> watches_;
  std::vector<std::shared_ptr<Watch>> to_arm_;
  std::vector<std::shared_ptr<Watch>> leaving_;  // removed, but the ring still knows them
};

}  // namespace varve::io
