// Why a mount ends: the kernel said so, a signal did, or memory is lacking (base/memory_reserve.h).
//
// SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR and SIGXCPU end a mount cleanly. All other signals whose default is to end a process are
// ignored: a stray SIGALRM or SIGUSR1 must not cost anybody data. A file that has reached RLIMIT_FSIZE is a failed write (EFBIG).
// Only SIGKILL, and what tells of a broken program (SIGSEGV and the like), end it like a power cut.
#pragma once

#include <csignal>
#include <optional>

#include "base/memory_reserve.h"
#include "base/result.h"

namespace varve::daemon {

enum class End : std::uint8_t { unmounted, signalled, lacks_memory, detached };

// Blocks the signals that end a mount for this thread and those it starts, and waits for them. One per process.
class Lifetime {
 public:
  Lifetime();
  ~Lifetime();
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  void unmounted();  // thread-safe
  void detached();   // thread-safe
  // Nothing: none has come within the time.
  std::optional<End> wait(int milliseconds);
  // After a signal or lack of memory: End::unmounted, or End::detached when detached() has been called; further signals do not count.
  End wait_detached();
  // After a signal: a second one, or the unmounting, within the time. False: neither came.
  bool wait_more(int milliseconds);
  const sigset_t& signals() const { return signals_; }  // that end a mount

 private:
  static constexpr std::size_t kReserve = 32u << 20;  // ends a mount with all that it holds unsealed

  // Nothing when the time is over; negative: for ever.
  std::optional<End> wait_for(bool signals_count, int milliseconds);

  sigset_t signals_;
  int unmounted_fd_, detached_fd_, lacking_fd_;  // counters of the kernel: unlike signals, nobody else can set or hide them
  MemoryReserve reserve_;
};

}  // namespace varve::daemon
