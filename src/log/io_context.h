// Chooses the queue that carries the engine's own I/O (chunks, payload, flushes), and counts it.
//
// A serving thread polls its queue all the time, so I/O started there completes there without a hand-over. Any other
// thread gives its requests to the service queue, whose thread the engine runs. Without threads (deterministic tests)
// there is one inline queue, which the waiting thread polls.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <unordered_set>

#include "base/mutex.h"
#include "base/result.h"
#include "io/block_device.h"

namespace varve::log {

class WriteCost;

struct IoCounters {
  std::atomic<std::uint64_t> bytes_written{0}, bytes_read{0}, writes{0}, reads{0}, flushes{0}, discards{0};
};

// While it lives, this thread's engine I/O goes to `queue`, which the thread promises to poll.
class ServingScope {
 public:
  explicit ServingScope(io::IoQueue& queue);
  ~ServingScope();
  static io::IoQueue* current();

 private:
  io::IoQueue* former_;
};

class IoContext {
 public:
  IoContext(io::BlockDevice& device, bool background);
  // What is still in flight on the inline queue is given up, as after a crash: nobody hears of it any more.
  ~IoContext();

  io::BlockDevice& device() { return device_; }
  bool background() const { return background_; }

  // The thread that runs the service loop; it must create and poll the queue itself.
  void set_service_queue(io::IoQueue* queue);

  // Starts one request; `done(error)` runs on the queue it went to (errno or 0), or at once with ECANCELED when the service
  // has ended. Thread-safe. The buffers must live until then. If it throws, nothing has been started.
  void start(std::unique_ptr<io::IoRequest> request, std::function<void(int error)> done);

  // Without background threads: completes what the inline queue has. Returns how much it completed.
  unsigned pump();
  // The same until nothing is in flight any more: discards, which nobody else waits for.
  void drain();
  // Only without background threads.
  io::IoQueue& inline_queue();

  WriteCost& write_cost() { return *write_cost_; }
  IoCounters& counters() { return counters_; }
  const IoCounters& counters() const { return counters_; }

 private:
  void count(const io::IoRequest& request);
  bool post_to_service(io::IoRequest& request);  // false: there is none any more

  io::BlockDevice& device_;
  const bool background_;
  Mutex mutex_;  // guards service_queue_ against the end of its thread
  io::IoQueue* service_queue_ GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<io::IoQueue> inline_queue_;
  std::unordered_set<io::IoRequest*> inline_flights_;
  IoCounters counters_;
  const std::unique_ptr<WriteCost> write_cost_;
};

}  // namespace varve::log
