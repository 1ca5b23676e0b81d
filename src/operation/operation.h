// One request on its way through the filesystem.
//
// No function of the filesystem waits. When one needs something that is not there yet (a tree node, a data block, room
// in the log, a flush), it notes that in its Operation and fails with Errc::would_block. The caller then waits with
// resume() or block_on() and calls the same function again with the same arguments and the same Operation; what was
// fetched stays pinned in it. Nothing has been changed by a call that failed with would_block, except that space can have
// been allocated for a part of a file: it goes on behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace varve::io {
class Reactor;
}

namespace varve::operation {

struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t pid = 0;
  std::uint32_t umask = 0;
};

class Operations;
struct Wait;

class Operation {
 public:
  // `reactor`: of the thread that serves it, which goes on polling it; null for a thread that blocks.
  Operation(Operations& operations, Caller caller, io::Reactor* reactor = nullptr);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Before the first attempt: it reads what this snapshot keeps instead of the newest state, and changes nothing (Errc::read_only).
  // Errc::stale when the snapshot has gone.
  void show(Serial snapshot) { shown_ = snapshot; }
  Serial shown() const { return shown_; }  // none: the newest state

  const Caller& caller() const { return caller_; }
  io::Reactor* reactor() const { return reactor_; }
  Wait& wait() { return *wait_; }  // operation/wait.h

  // After Errc::would_block: calls `ready` once, on the reactor's thread, when the call should be repeated. Never calls it
  // before returning.
  void resume(std::function<void()> ready);
  // After Errc::would_block: blocks the calling thread until the call should be repeated.
  void block();

 private:
  Operations& operations_;
  Caller caller_;
  io::Reactor* const reactor_;
  Serial shown_;
  const std::unique_ptr<Wait> wait_;
};

// Calls attempt() (which returns a Result) until it has an answer; for threads that may block.
template <class Attempt>
auto block_on(Operation& operation, Attempt&& attempt) {
  for (;;) {
    auto result = attempt();
    if (!result.fails_with(Errc::would_block)) return result;
    operation.block();
  }
}

// An operation that run() has begun, with what to do and what comes after it.
template <class Attempt, class Finish>
struct Run {
  Operation& operation;
  Attempt attempt;
  Finish finish;
};

// One attempt; the last one ends `run`.
template <class Attempt, class Finish>
void go_on(Run<Attempt, Finish>* run) {
  auto result = run->attempt();
  if (result.fails_with(Errc::would_block)) return run->operation.resume([run] { go_on(run); });
  const std::unique_ptr<Run<Attempt, Finish>> owned(run);
  run->finish(std::move(result));
}

// Calls attempt() until it has an answer and then finish(result), without ever blocking; for operations with a reactor.
// `attempt` and `finish` must keep what they use alive (the operation, the request's message). finish may run before
// this returns; it is called in any case, and when nothing is under way for the operation.
template <class Attempt, class Finish>
void run(Operation& operation, Attempt attempt, Finish finish) {
  auto result = attempt();
  if (!result.fails_with(Errc::would_block)) return finish(std::move(result));
  auto* const waiting = new Run<Attempt, Finish>{operation, std::move(attempt), std::move(finish)};
  operation.resume([waiting] { go_on(waiting); });
}

}  // namespace varve::operation
