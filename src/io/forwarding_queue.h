// Base of the queues of decorators: everything goes to the queue below, unless a decorator takes a hand in it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "io/block_device.h"

namespace varve::io {

class ForwardingQueue : public IoQueue {
 public:
  explicit ForwardingQueue(std::unique_ptr<IoQueue> below) : below_(std::move(below)) {}

  void submit(IoRequest& request) override { below_->submit(request); }
  void kick() override { below_->kick(); }
  unsigned poll() override;
  unsigned wait(std::int64_t timeout_ns) override;
  void may_spin(bool may) override { below_->may_spin(may); }
  std::size_t in_flight() const override { return below_->in_flight() + local_.size(); }
  void watch(int fd, std::function<void()> readable) override { below_->watch(fd, std::move(readable)); }
  void unwatch(int fd) override { below_->unwatch(fd); }
  void post(std::function<void()> task) override { below_->post(std::move(task)); }
  void wake() override { below_->wake(); }

 protected:
  using Done = std::function<void(IoRequest&)>;

  // Hands a request to the queue below and calls `after` when it is finished, with the request's own `done` back in its
  // place: `after` may change the result and must end with pass_up().
  void forward(IoRequest& request, Done after);
  static void pass_up(IoRequest& request) {
    if (request.done) request.done(request);
  }

  // Finishes a request without the queue below, in the next poll() or wait().
  void finish_later(IoRequest& request, int error);

  IoQueue& below() { return *below_; }

 private:
  struct Hook {
    Done done;
    Done after;
  };

  unsigned run_local();

  std::deque<IoRequest*> local_;
  std::deque<Hook> hooks_;  // all that were ever needed
  std::vector<Hook*> unused_;
  std::unique_ptr<IoQueue> below_;  // last: its end may still call hooks
};

}  // namespace varve::io
