// A modelled device below the engine itself, without a kernel: each request takes the model's time, by a clock that only the device
// moves. So a run is the same on any machine, and needs no longer than the computing takes, unless it is to be felt (run_at).
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"
#include "io/block_device.h"
#include "models/model.h"

namespace varve::bench {

// The device's time. Thread-safe.
class DeviceClock : public Clock {
 public:
  Timestamp now() override;
  std::uint64_t monotonic_ns() override { return kStart + elapsed_.load(); }
  void advance(std::uint64_t ns);
  // From now on each request returns when the real device would have answered it, `speed` times as fast (0: at once). What is computed
  // meanwhile hides behind the device. Before the first request.
  void run_at(double speed);
  std::uint64_t elapsed_ns() const { return elapsed_; }

 private:
  static constexpr std::uint64_t kStart = 1'000'000'000;
  std::atomic<std::uint64_t> elapsed_{0};
  double speed_ = 0;
  std::chrono::steady_clock::time_point began_;
};

// One request at a time, in the order of submission: a queue that the device could choose from is not modelled. Belongs to one thread.
class ModelDevice : public io::BlockDevice {
 public:
  // All of these must outlive it. `below` has the content. `discards`: may it be told of what is free?
  ModelDevice(io::BlockDevice& below, DeviceModel& model, DeviceClock& clock, bool discards);

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  int execute(io::IoRequest& request) override;

 private:
  void serve(const io::IoRequest& request);

  io::BlockDevice& below_;
  DeviceModel& model_;
  DeviceClock& clock_;
  io::Geometry geometry_;
};

}  // namespace varve::bench
