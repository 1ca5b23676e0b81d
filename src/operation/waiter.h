// Counts what an operation still waits for, and tells it when the last of that has come.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/mutex.h"
#include "io/reactor.h"
#include "operation/wait_times.h"

namespace varve::operation {

// One for each operation, used again for each of its waits. What is waited for keeps its address, so that
// the operation stays until all of it has come.
class Waiter {
 public:
  explicit Waiter(WaitTimes& times) : times_(times) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Begins a wait, which lasts until all_asked_for() has been called and everything has come. Then `ready` is called on the
  // reactor's thread, never from inside all_asked_for(); or, with no reactor, block() returns.
  void begin(io::Reactor* reactor, std::function<void()> ready);
  void all_asked_for() { end_one(true); }
  void block();
  bool is_over() const;  // of a wait without a reactor

  // One thing more is asked for: came(cause) will be called once, from any thread, maybe at once.
  void expect() { outstanding_.fetch_add(1, std::memory_order_relaxed); }
  template <class Ask>
  void await(Ask&& ask) {
    expect();
    ask();
  }
  void came(std::optional<WaitCause> cause);

 private:
  void end_one(bool inside);
  void tell();  // on the reactor's thread

  WaitTimes& times_;
  std::atomic<unsigned> outstanding_{0};
  std::uint64_t since_ns_ = 0;
  io::Reactor* reactor_ = nullptr;
  std::function<void()> ready_;
  mutable Mutex mutex_;
  Condition changed_;
  bool over_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::operation
