// Which of the data that the kernel holds back have arrived. When it writes back what it caches, it makes WRITEs of that. Only so many
// of them are on their way to the daemon at a time. The others wait in a queue that only the kernel sees.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace varve::fuse {

// Thread-safe.
class Arrivals {
 public:
  // Of one thread that takes messages, which tells when it may have one that is not counted yet.
  class Taking {
   public:
    explicit Taking(Arrivals& arrivals) : arrivals_(arrivals) { arrivals_.add(*this); }
    ~Taking() { arrivals_.remove(*this); }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;
    void begin() { turn_.fetch_add(1); }
    void end() { turn_.fetch_add(1, std::memory_order_release); }
    std::uint64_t turn() const { return turn_.load(); }  // odd between the two

   private:
    Arrivals& arrivals_;
    std::atomic<std::uint64_t> turn_{0};
  };

  // A message that moves data has been taken, and later on it is done. Those on both sides of a call of settle() are counted apart.
  unsigned begin_data();
  std::uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  void end_data(unsigned side) { under_way_[side].fetch_sub(1, std::memory_order_release); }

  // Returns when the WRITEs that the kernel has made before the call are done. `most`: of the requests that it waits for in the
  // background, how many it has on their way at most. When this returns true a quarter of them was so at some moment. `waits`: has it
  // a message that nobody has taken? Returns false when that was not to be seen before the limit. For a thread that serves nobody,
  // one at a time.
  bool settle(std::size_t most, const std::function<bool()>& waits, std::chrono::milliseconds limit);

 private:
  using Turns = std::vector<std::uint64_t>;

  void add(Taking& taking);
  void remove(Taking& taking);
  Turns turns();
  bool nothing_is_hidden(std::size_t most, const std::function<bool()>& waits);
  bool wait_for(const std::function<bool()>& holds, std::uint64_t end_ns);

  std::atomic<unsigned> side_{0};
  std::atomic<std::uint64_t> begun_{0};
  std::array<std::atomic<std::uint64_t>, 2> under_way_{};
  Mutex mutex_;
  std::vector<Taking*> taking_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse
