// Finds by timed writes what a device writes cheaply, before a filesystem is made on it, as flashbench does.
//
// It destroys some megabytes here and there. It takes seconds on a fast device and a minute or two on a slow card: kMostNs bounds it. What
// cannot be told clearly is not found; docs/devices.md says how it goes about it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "format/make.h"
#include "mkfs/timed_device.h"
#include "mkfs/turns.h"

namespace varve::mkfs {

struct Findings {
  std::uint64_t erase_unit = 0;  // bytes; 0: none was found
  std::uint16_t streams = 0;     // places that may be written in turn, each in its unit; 0: no limit was found. Only both or none
  format::WritingCosts costs;    // in_row and scattered, of a block; 0: not measured
  std::uint64_t read_ns = 0;     // a block somewhere
  std::uint64_t took_ns = 0;
  std::string outcome;           // in words
};

// What the user has given counts more than what was measured, and that more than what the device tells. Costs count only where units
// explain them: what is cheap for a hundred writes, in a cache or in spare blocks, may be dear for thousands.
void adopt(const Findings& found, format::MakeParameters& parameters);

class Trial {
 public:
  static constexpr std::uint64_t kLeastBytes = 128 << 20;  // smaller devices are not tried: too few units would fit
  static constexpr std::uint64_t kMostNs = 100'000'000'000;
  static constexpr unsigned kMostStreams = 24;  // more are no limit to us
  using Say = std::function<void(const std::string&)>;

  // Of the first `bytes` of the device; nothing in its first 8 MiB is written. `say` hears how far it has come. Where nothing is found
  // while the machine is busy, as `waits` tells, it is tried again, and said.
  Trial(io::BlockDevice& device, std::uint64_t bytes, Clock& clock, Random& random, Say say, HostWaits waits = HostWaits::none());

  // Only errors of the device are errors.
  Result<Findings> run();

 private:
  Status try_once();
  Status measure_reads();
  Status measure_rows();
  Status find_units();
  Status find_nothing(const Turns& turns, const std::string& why);
  Result<std::optional<unsigned>> find_streams(Turns& turns);
  Result<bool> is_repeated(Turns& turns, unsigned streams);
  Result<std::uint64_t> slow_from();
  Status measure_scattered();
  bool explains(std::uint64_t unit, std::uint64_t slow_ns) const;
  bool seeks() const;
  double row_ns(std::uint64_t bytes) const;

  const std::uint64_t bytes_;
  TimedDevice device_;
  Random& random_;
  const Say say_;
  std::uint64_t most_ = 0;  // the largest unit that is looked for, in bytes
  std::uint64_t base_ = 0;  // where one begins, whatever its size
  bool busy_ = false;       // the machine was, when it was tried last
  std::vector<Place> places_;
  Findings found_;
};

}  // namespace varve::mkfs
