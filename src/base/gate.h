// Keeps sealing and freezing apart from operations. An operation passes through the gate for the microseconds of one
// attempt (it never waits inside); the sealer closes it and then sees every operation whole or not at all.
//
// The compiler checks it as one capability, `the_gate`: REQUIRES_SHARED(the_gate) says "inside the gate", REQUIRES(the_gate)
// "with the gate closed", EXCLUDES(the_gate) "not inside the gate". A process has one gate, but in tests.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "base/mutex.h"

namespace varve {

class CAPABILITY("gate") GateRole {};
inline GateRole the_gate;

// Many lanes, so that threads that pass do not touch a common cache line. Not recursive: a thread inside may neither
// enter again nor close.
class Gate {
 public:
  class SCOPED_CAPABILITY Pass {
   public:
    explicit Pass(Gate& gate) ACQUIRE_SHARED(the_gate) : lock_(gate.lanes_[lane()].mutex) {}
    ~Pass() RELEASE_GENERIC() = default;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    void leave() RELEASE_GENERIC() { lock_.unlock(); }

   private:
    static std::size_t lane() {
      static std::atomic<std::size_t> next{0};
      thread_local const std::size_t mine = next++ % kLanes;
      return mine;
    }
    std::unique_lock<Mutex> lock_;
  };

  class SCOPED_CAPABILITY Closure {
   public:
    explicit Closure(Gate& gate) ACQUIRE(the_gate) NO_THREAD_SAFETY_ANALYSIS : gate_(gate) {  // the lanes are that one capability
      for (Lane& lane : gate_.lanes_) lane.mutex.lock();
    }
    ~Closure() RELEASE() NO_THREAD_SAFETY_ANALYSIS {  // the same
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
    Mutex mutex{LockRank::gate};
  };
  std::array<Lane, kLanes> lanes_;
};

}  // namespace varve
