// What is on its way to the device, and writers that wait until it is less (bandwidth.h). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/wait_list.h"
#include "device/bandwidth.h"

namespace varve::device {

class Flow {
 public:
  // `most`: bytes, whatever the device can do.
  Flow(Clock& clock, std::uint64_t most);

  void launched(std::uint64_t bytes);
  // Tells the writers that wait.
  void landed(std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_per_second() const { return bandwidth_.bytes_per_second(); }  // that the device takes; 0: not known yet
  bool is_full() const { return bytes() > bandwidth_.limit(); }
  // Calls `ready` when there is room again; maybe at once.
  void when_room(std::function<void()> ready) {
    waiting_.add_while([this] { return is_full(); }, std::move(ready));
  }
  // Tells all that wait, though there is none: they are to look what else has changed.
  void wake() { waiting_.wake(); }

 private:
  Clock& clock_;
  Bandwidth bandwidth_;
  std::atomic<std::uint64_t> bytes_{0};
  WaitList waiting_;
};

}  // namespace varve::device
