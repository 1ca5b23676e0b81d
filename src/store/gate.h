// Keeps sealing and freezing apart from operations. An operation passes through the gate for the microseconds of one
// attempt (it never waits inside); the sealer closes it and then sees every operation whole or not at all.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

namespace varve::store {

// Many lanes, so that threads that pass do not touch a common cache line. Not recursive: a thread inside may neither
// enter again nor close.
class Gate {
 public:
  class Pass {
   public:
    explicit Pass(Gate& gate) : lock_(gate.lanes_[lane()].mutex) {}
    void leave() { lock_.unlock(); }

   private:
    static std::size_t lane() {
      static std::atomic<std::size_t> next{0};
      thread_local const std::size_t mine = next++ % kLanes;
      return mine;
    }
    std::unique_lock<std::mutex> lock_;
  };

  class Closure {
   public:
    explicit Closure(Gate& gate) : gate_(gate) {
      for (Lane& lane : gate_.lanes_) lane.mutex.lock();
    }
    ~Closure() {
      for (Lane& lane : gate_.lanes_) lane.mutex.unlock();
    }
    Closure(const Closure&) = delete;
    Closure& operator=(const Closure&) = delete;

   private:
    Gate& gate_;
  };

 private:
  static constexpr std::size_t kLanes = 16;
  struct alignas(64) Lane {
    std::mutex mutex;
  };
  std::array<Lane, kLanes> lanes_;
};

}  // namespace varve::store
