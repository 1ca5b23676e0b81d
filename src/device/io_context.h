// The engine's I/O: its device, with every request counted, and the reactor of threads that have none of their own.
//
// A serving thread submits to its own reactor, so I/O started there completes there without a hand-over. All others give theirs
// to the service reactor. The engine's service thread runs that one; without threads (deterministic tests) the waiting thread does.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "io/reactor.h"
#include "io/trace_device.h"

namespace varve::device {

class StreamMeter;
class WriteCost;

class IoContext {
 public:
  // `device` and `clock` must outlive this. `erase_unit`: in bytes, as far as it is known; 0: streams are not measured.
  IoContext(io::BlockDevice& device, bool background, Clock& clock = Clock::system(), std::uint64_t erase_unit = 0);
  ~IoContext();

  io::BlockDevice& device() { return device_; }
  io::TraceCounts counts() const { return device_.counts(); }
  // Both tell how long the device has taken (io/trace_device.h): for requests that device_timer.h measures, and for all others.
  [[nodiscard]] io::TraceDevice::Apart count_apart() { return io::TraceDevice::Apart(device_); }
  io::DeviceTime time_apart() const { return device_.time_apart(); }
  io::DeviceTime time_of_others() const { return device_.time_of_others(); }
  // base/cpu_waits.h. Without background threads nothing of the host counts, and these are 0.
  std::uint64_t cpu_wait_of_thread_ns() const;
  std::uint64_t cpu_wait_of_process_ns() const;
  bool background() const { return background_; }

  // With background threads: the service reactor is made, run and ended by one thread. After end_service() it takes no more
  // requests, but carries out those that it has; after close_service() it is gone.
  io::Reactor& open_service();
  void end_service();
  void close_service();
  void wake_service();

  // Starts a request. `reactor`: of the calling thread, null if it has none. Completes with ECANCELED, maybe at once, when
  // there is no service. Thread-safe.
  void start(io::IoRequest& request, io::Reactor* reactor = nullptr);

  // Without background threads: completes what the service reactor has. Returns how much it completed.
  unsigned pump();
  // The same, and sleeps until there is something.
  void wait();
  // The same until nothing is in flight any more: discards, which nobody else waits for.
  void drain();
  // What is in flight on the service reactor is given up, as after a crash, and so is the reactor. By the last thread.
  void abandon() { close_service(); }

  WriteCost& write_cost() { return *write_cost_; }
  const StreamMeter& streams() const { return *streams_; }

 private:
  bool hand_to_service(io::IoRequest& request);

  io::TraceDevice device_;
  const bool background_;
  const std::unique_ptr<WriteCost> write_cost_;
  const std::unique_ptr<StreamMeter> streams_;
  Mutex mutex_{LockRank::io_thread};  // a request is handed over before the end, or not at all
  std::unique_ptr<io::Reactor> service_ GUARDED_BY(mutex_);
  io::Reactor* own_ = nullptr;  // without threads: the same
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::device
