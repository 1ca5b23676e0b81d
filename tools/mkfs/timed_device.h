// A device whose requests are timed, for the trial: one step at a time, on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/buffer.h"
#include "base/clock.h"
#include "io/block_device.h"

namespace varve::mkfs {

// How long something waited for a CPU so far, ns (base/cpu_waits.h): the thread that calls, or anything on the machine.
struct HostWaits {
  std::function<std::uint64_t()> of_thread, of_machine;

  static HostWaits of_system();
  static HostWaits none();
};

// All times are nanoseconds, and at least 1. What the thread waited for a CPU is not in them, but for several requests at once.
// Errc::interrupted: the tool was asked to end (shared/interruptible.h).
class TimedDevice {
 public:
  static constexpr std::uint64_t kPieceBytes = 32 << 10;  // no less than the pages of most cards
  static constexpr std::uint64_t kRowBytes = 1 << 20;

  // What is written is made of `random`, so that no device can make it smaller.
  TimedDevice(io::BlockDevice& device, Clock& clock, Random& random, HostWaits waits = HostWaits::none());

  // At most kRowBytes, durable when it returns.
  Result<std::uint64_t> write(std::uint64_t offset, std::uint64_t bytes);
  Result<std::uint64_t> read(std::uint64_t offset, std::uint64_t bytes);
  // A block at each of these places, several on their way at once. Not durable before flush().
  Result<std::uint64_t> write_blocks(std::span<const std::uint64_t> offsets);
  Result<std::uint64_t> flush();

  std::uint64_t elapsed_ns() const { return clock_.monotonic_ns() - began_ns_; }  // since it was made
  bool rotational() const { return device_.geometry().rotational; }
  const std::string& name() const { return device_.name(); }

  // Was something kept waiting for a CPU for so much of the time since then that times of the device say little?
  struct Moment {
    std::uint64_t elapsed_ns, waited_ns;
  };
  Moment now() const { return {elapsed_ns(), waits_.of_machine()}; }
  double busy_share(const Moment& since) const;  // of the machine, from 0 to 1

 private:
  Result<std::uint64_t> execute(io::IoRequest& request);

  io::BlockDevice& device_;
  Clock& clock_;
  const HostWaits waits_;
  const std::uint64_t began_ns_;
  AlignedBuffer bytes_;
};

}  // namespace varve::mkfs
