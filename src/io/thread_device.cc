#include "io/thread_device.h"

#include <atomic>
#include <vector>

#include "io/first_exception.h"
#include "io/poll_queue.h"
#include "io/request.h"

namespace varve::io {

namespace {

class ThreadQueue : public PollQueue, private CompletionSink {
 public:
  explicit ThreadQueue(FdDevice& device) : device_(device) {}
  ~ThreadQueue() override { wait_for_pool(); }

  void submit(IoRequest& request) override {
    held_back_.push_back(&request);
    ++in_flight_;
  }

  void kick() override {
    if (held_back_.empty()) return;
    if (device_.pool().add(held_back_, *this)) {
      in_pool_ += held_back_.size();
      held_back_.clear();
    } else {
      carry_out();
    }
  }

  std::size_t in_flight() const override { return in_flight_; }

 protected:
  unsigned reap() override {
    if (!has_completed_.load(std::memory_order_acquire)) return 0;
    std::vector<IoRequest*> completed = take_completed();
    in_pool_ -= completed.size();
    call_for_all(completed, [this](IoRequest* request) {
      --in_flight_;
      complete(*request, request->error);
    });
    return static_cast<unsigned>(completed.size());
  }

 private:
  // Without a thread for it, the waiting thread does it.
  void carry_out() {
    for (; !held_back_.empty(); held_back_.pop_back(), ++in_pool_) {
      IoRequest& request = *held_back_.back();
      request.error = device_.execute(request);
      finished(request);
    }
  }

  // Called by the pool's threads. Signals under the lock, so that the owner cannot see the last request and destroy the
  // queue while this thread still needs it.
  void finished(IoRequest& request) override {
    const Lock lock(mutex_);
    completed_.push_back(&request);
    has_completed_.store(true, std::memory_order_release);
    mailbox_.signal();
  }

  std::vector<IoRequest*> take_completed() {
    const Lock lock(mutex_);
    has_completed_.store(false, std::memory_order_relaxed);
    return std::exchange(completed_, {});
  }

  // A queue thrown away with requests in flight must not leave the pool with pointers into freed memory.
  void wait_for_pool() {
    while (in_pool_ > 0) {
      mailbox_.drain();
      in_pool_ -= take_completed().size();
    }
  }

  FdDevice& device_;
  std::vector<IoRequest*> held_back_;
  std::size_t in_flight_ = 0;
  std::size_t in_pool_ = 0;
  std::atomic<bool> has_completed_{false};
  Mutex mutex_;
  std::vector<IoRequest*> completed_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<IoQueue> make_thread_queue(FdDevice& device) { return std::make_unique<ThreadQueue>(device); }

std::unique_ptr<IoQueue> ThreadDevice::make_queue() { return make_thread_queue(*this); }

}  // namespace varve::io
