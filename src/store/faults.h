// Errors of a mounted filesystem, and the end of all writing. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/mutex.h"
#include "base/result.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::store {

class Faults {
 public:
  // `super`: as found, with the errors noted there. `device` outlives it.
  Faults(io::BlockDevice& device, Clock& clock, const format::Superblock& super, bool read_only);

  bool read_only() const { return read_only_.load(std::memory_order_relaxed); }
  std::string reason() const;
  Error refusal() const { return Error(Errc::read_only, reason()); }  // of what would write

  // From now on nothing is written any more. The first reason stays; the device's own refusal goes before it.
  void go_read_only(const Error& why);
  // Called once, by the thread that finds the fault, outside all locks. Set before there are other threads.
  void on_read_only(std::function<void(const Error& why)> call) { read_only_call_ = std::move(call); }
  // An invariant was found broken (base/invariant.h), which stops writing at once. Does the rest of go_read_only(): call it now and
  // then, outside all locks.
  void settle_alarm();

  // Notes an error for the superblock. `address` and `ino`: where, or {}.
  void note(Errc code, BlockAddr address, Ino ino);
  std::pair<format::ErrorEvent, format::ErrorEvent> first_and_last() const;
  std::uint64_t count() const;  // since the mount

 private:
  io::BlockDevice& device_;
  Clock& clock_;
  std::atomic<bool> read_only_, alarmed_{false};
  std::function<void(const Error&)> read_only_call_;
  mutable Mutex mutex_;
  std::string reason_ GUARDED_BY(mutex_), alarm_ GUARDED_BY(mutex_);
  format::ErrorEvent first_ GUARDED_BY(mutex_), last_ GUARDED_BY(mutex_);
  std::uint64_t count_ GUARDED_BY(mutex_) = 0;
  const InvariantWatch watch_;
};

}  // namespace varve::store
