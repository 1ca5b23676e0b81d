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
#include "device/bad_places.h"
#include "device/fault_counts.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::device {

class Faults {
 public:
  // `super`: as found, with the errors noted there. `device` outlives it.
  Faults(io::BlockDevice& device, Clock& clock, const format::Superblock& super, bool read_only);

  bool read_only() const { return read_only_.load(std::memory_order_relaxed); }
  std::string reason() const;
  Error refusal() const { return Error(Errc::read_only, reason()); }  // of what would write

  // The host has no room for what is written, which is held (io/holding_device.h). Nothing new is let in meanwhile, so that no more is held
  // than was under way, or acknowledged, by then.
  bool host_full() const { return host_full_.load(std::memory_order_relaxed); }
  void set_host_full(bool is_full) {
    if (is_full && !host_full_.exchange(true, std::memory_order_relaxed)) ++host_fulls_;
    else host_full_.store(is_full, std::memory_order_relaxed);
  }
  // How often that began: what took long meanwhile says nothing about the device.
  std::uint64_t host_fulls() const { return host_fulls_.load(std::memory_order_relaxed); }

  // From now on nothing is written any more. The first reason stays; the device's own refusal goes before it.
  void go_read_only(const Error& why);
  // Called once, by the thread that finds the fault, outside all locks. Set before there are other threads.
  void on_read_only(std::function<void(const Error& why)> call) { read_only_call_ = std::move(call); }
  // An invariant was found broken (base/invariant.h), which stops writing at once. Does the rest of go_read_only(): call it now and
  // then, outside all locks.
  void settle_alarm();

  // Notes what could not be read (Errc::io) or was damaged, for the superblock and for status. `address` and `ino`: where, or {}.
  void note(Errc code, BlockAddr address, Ino ino);
  // The same of a block of a file. `what` comes into the log: once a day for each place, and of so many places that it says enough.
  void note_data(Errc code, BlockAddr address, Ino ino, const std::string& what);
  std::pair<format::ErrorEvent, format::ErrorEvent> first_and_last() const;
  FaultCounts counts() const;  // since the mount

 private:
  enum class Kind : std::uint8_t { unreadable, damaged, other };
  static Kind kind_of(Errc code);
  bool add(Kind kind, Errc code, BlockAddr address, Ino ino);  // true: a place that was not known

  io::BlockDevice& device_;
  Clock& clock_;
  std::atomic<bool> read_only_, alarmed_{false}, host_full_{false};
  std::atomic<std::uint64_t> host_fulls_{0};
  std::function<void(const Error&)> read_only_call_;
  mutable Mutex mutex_{LockRank::fault};
  std::string reason_ GUARDED_BY(mutex_), alarm_ GUARDED_BY(mutex_);
  format::ErrorEvent first_ GUARDED_BY(mutex_), last_ GUARDED_BY(mutex_);
  FaultCounts counts_ GUARDED_BY(mutex_);
  BadPlaces places_ GUARDED_BY(mutex_);
  const InvariantWatch watch_;
};

}  // namespace varve::device
