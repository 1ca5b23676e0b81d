// The root's listings do not show the folder of snapshots. But the kernel looks there for its name when it has only the handle of
// a directory in it. First it asks, by the same thread, what is above the folder: so the next listing of that thread shows it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace varve::fuse {

class HiddenFolder {  // thread-safe
 public:
  void sought_by(std::uint32_t thread) { seeker(thread).store(mark(thread), std::memory_order_relaxed); }
  // True once.
  bool is_shown_to(std::uint32_t thread) {
    std::uint64_t expected = mark(thread);
    return seeker(thread).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }

 private:
  static std::uint64_t mark(std::uint32_t thread) { return std::uint64_t{thread} + 1; }
  // Threads of a server of NFS have numbers in a row.
  std::atomic<std::uint64_t>& seeker(std::uint32_t thread) { return seekers_[thread % seekers_.size()]; }

  std::array<std::atomic<std::uint64_t>, 64> seekers_{};  // 0: nobody
};

}  // namespace varve::fuse
