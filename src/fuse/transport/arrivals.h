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

  // A READ or a WRITE of so many bytes has been taken. What this returns tells end_data() when it is done.
  unsigned begin_read();
  unsigned begin_write(std::uint64_t bytes);
  void end_data(unsigned kind) { under_way_[kind].fetch_sub(1, std::memory_order_release); }

  struct Writes {
    std::uint64_t count = 0, bytes = 0;
  };
  Writes writes() const { return {writes_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)}; }

  // Returns when the WRITEs that the kernel has made before the call are done. `most`: of the requests that it waits for in the
  // background, how many it has on their way at most. When this returns true a quarter of them was so at some moment. `waits`: has it
  // a message that nobody has taken? Returns false when that was not to be seen before the first limit, or those WRITEs that have come
  // were not done before the second one after it. For a thread that serves nobody, one at a time.
  struct Limits {
    std::chrono::milliseconds hidden, done;
  };
  bool settle(std::size_t most, const std::function<bool()>& waits, const Limits& limits);

 private:
  using Turns = std::vector<std::uint64_t>;

  void add(Taking& taking);
  void remove(Taking& taking);
  Turns turns();
  bool nothing_is_hidden(std::size_t most, const std::function<bool()>& waits);
  bool is_done(unsigned kind) const { return under_way_[kind].load(std::memory_order_acquire) == 0; }

  static constexpr unsigned kReads = 2;
  std::atomic<unsigned> side_{0};  // of WRITEs that come: those on both sides of a call of settle() are counted apart
  std::atomic<std::uint64_t> writes_{0}, bytes_{0};
  std::array<std::atomic<std::uint64_t>, 3> under_way_{};  // WRITEs of both sides, READs
  Mutex mutex_;
  std::vector<Taking*> taking_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse
