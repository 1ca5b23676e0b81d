// What writing costs on this device, measured on the cleaner's own writes as it makes them. Many requests of few blocks here
// and there, several on their way at once, stand against many blocks in a row. It decides between filling holes and copying
// (Matthews et al. 1997).
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "device/device_span.h"

namespace varve::device {

// Thread-safe.
class WriteCost {
 public:
  static constexpr std::uint32_t kFew = 2, kMany = 32;  // blocks of one request, on average
  static constexpr std::uint32_t kPieces = 8;           // of which fewer say nothing about scattered writes
  static constexpr double kRotationalFactor = 100, kUsualFactor = 4;  // before there is anything to go by
  static constexpr double kUsualHandling = 1;          // a block is read as fast as it is written
  static constexpr std::uint64_t kSeekNs = 2'000'000;  // what reads slower than that here and there seeks
  static constexpr std::uint64_t kLongNs = 100'000'000;  // where writes are that dear nobody waits for more of them

  explicit WriteCost(bool rotational) : rotational_(rotational) {}

  // What a former mount has measured, in ns for a block; 0: nothing. Counts like the first samples.
  void restore(std::uint32_t in_row, std::uint32_t scattered);
  // What writes here and there cost is to be measured anew.
  void forget_scattered();
  // As restore() takes them, for the next one.
  std::uint32_t in_row() const;
  std::uint32_t scattered() const;
  // Such a batch of requests took the device so long.
  void observe(std::uint32_t requests, std::uint32_t blocks, const DeviceSpan& took);
  // A single block somewhere took kLongNs or more, and not by chance.
  void observe_slow(std::uint64_t ns);
  // Reading what lives in a segment took so long. Virtual disks call themselves rotating whatever they are: what reads here and
  // there without seeks is not taken for one.
  void observe_read(const DeviceSpan& took);
  // Moving so many blocks took the device so long beside writing them: looking them up and reading.
  void observe_handling(std::uint64_t blocks, const DeviceSpan& took);
  // Returns that time for a block, over the one that it takes to write it in a row.
  double handling() const;
  // Time for a segment's worth of blocks written few at a time, over that in a row; at least 1.
  double factor() const;
  bool knows_in_row() const;
  bool knows_scattered() const;
  // Returns how many blocks, few at a time, are written in about that time; 0: not known.
  std::uint64_t scattered_within(std::uint64_t ns) const;
  // Has it been seen that reads here and there are slow?
  bool seeks() const;

 private:
  // As many samples as this say something, and fewer do if they took kLongNs.
  static constexpr unsigned kLeastSamples = 8;
  // After as many batches in a row nobody knows any more what scattered ones would cost: they get another chance.
  static constexpr unsigned kForgotten = 4096;
  struct Mean {  // moving
    double ns = 0;
    std::uint64_t samples = 0, spent = 0;
    double weight = static_cast<double>(samples);  // of them together
    void add(double value, const DeviceSpan& took);
    bool known() const { return samples >= kLeastSamples || spent >= kLongNs; }
  };
  // Can be compared with sequential writes.
  bool comparable(const Mean& mean) const REQUIRES(mutex_) { return mean.known() && sequential_.known() && sequential_.ns > 0; }
  double assumed() const REQUIRES(mutex_);

  const bool rotational_;
  mutable Mutex mutex_;
  Mean scattered_ GUARDED_BY(mutex_), sequential_ GUARDED_BY(mutex_), handling_ GUARDED_BY(mutex_);  // per block
  Mean reads_ GUARDED_BY(mutex_);  // per batch
  unsigned since_scattered_ GUARDED_BY(mutex_) = 0;  // sequential batches
};

}  // namespace varve::device
