// How long requests take from their arrival to their answer, by opcode. One per serving thread: no lock, no memory, two additions
// for each request.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "fuse/protocol/protocol.h"

namespace varve::fuse {

// Buckets as in HdrHistogram (Tene 2012): four for each power of two, so that a bound is never off by more than a quarter.
class Latencies {
 public:
  static constexpr unsigned kPowers = 26;              // up to 2^26 µs, a minute; the last bucket has what takes longer
  static constexpr unsigned kBuckets = 4 * kPowers + 1;

  void add(std::uint32_t opcode, std::uint64_t ns) {
    if (opcode >= kOpcodes) return;
    Histogram& histogram = by_opcode_[opcode];
    histogram.counts[bucket_of(ns / 1000)].fetch_add(1, std::memory_order_relaxed);
    histogram.total_ns.fetch_add(ns, std::memory_order_relaxed);
  }
  std::uint64_t count(std::uint32_t opcode, unsigned bucket) const {
    return by_opcode_[opcode].counts[bucket].load(std::memory_order_relaxed);
  }
  std::uint64_t total_ns(std::uint32_t opcode) const { return by_opcode_[opcode].total_ns.load(std::memory_order_relaxed); }

  static constexpr unsigned bucket_of(std::uint64_t us) {
    if (us < 4) return static_cast<unsigned>(us);
    const unsigned power = static_cast<unsigned>(std::bit_width(us)) - 1;
    const unsigned bucket = 4 * (power - 1) + static_cast<unsigned>((us >> (power - 2)) & 3);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // The first µs above it. Of the last one: 0, there is none.
  static constexpr std::uint64_t end_of(unsigned bucket) {
    if (bucket + 1 >= kBuckets) return 0;
    if (bucket < 3) return bucket + 1;
    const unsigned next = bucket + 1;
    return (4ULL + next % 4) << (next / 4 - 1);
  }

 private:
  struct Histogram {
    std::array<std::atomic<std::uint64_t>, kBuckets> counts{};
    std::atomic<std::uint64_t> total_ns{0};
  };
  std::array<Histogram, kOpcodes> by_opcode_;
};
static_assert(Latencies::bucket_of(Latencies::end_of(9)) == 10 && Latencies::bucket_of(Latencies::end_of(40) - 1) == 40);

}  // namespace varve::fuse
