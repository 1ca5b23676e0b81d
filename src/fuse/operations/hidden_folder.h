// The root's listings do not show the folder of snapshots. But the kernel looks there for its name when it has only the handle of
// a directory in it. First it asks, by the same thread, what is above the folder: so the next listing of that thread shows it.
#pragma once

#include <atomic>
#include <cstdint>

namespace varve::fuse {

class HiddenFolder {  // thread-safe
 public:
  void sought_by(std::uint32_t thread) { seeker_.store(thread, std::memory_order_relaxed); }
  // True once.
  bool is_shown_to(std::uint32_t thread) {
    std::int64_t seeker = thread;
    return seeker_.compare_exchange_strong(seeker, kNobody, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kNobody = -1;
  std::atomic<std::int64_t> seeker_{kNobody};
};

}  // namespace varve::fuse
