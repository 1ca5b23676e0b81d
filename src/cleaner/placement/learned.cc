// Streams by the rate at which blocks like this one have been seen to die (death_rates.h), an octave each. Where all die
// at one rate there is one stream, where rates differ they part, and what stopped being written sinks at once.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "cleaner/placement/builtin.h"
#include "cleaner/placement/death_rates.h"

namespace varve::cleaner {
namespace {

class Learned final : public Placement {
 public:
  Learned(unsigned groups, const PlacementScale& scale, double memory, double least)
      : most_groups_(groups),
        capacity_(static_cast<double>(std::max<std::uint64_t>(scale.capacity, 1))),
        least_(least * scale.segment_blocks),
        rates_(memory * capacity_, 1u << 14) {
    for (unsigned i = 0; i < kStreams; ++i)  // until something is known: equal ranges
      group_of_[i] = static_cast<std::uint8_t>((i * most_groups_ / kStreams + 1) * kStreams / most_groups_ - 1);
  }
  std::string_view name() const override { return "learned"; }
  unsigned groups() const override { return kStreams; }
  std::uint8_t place(const WrittenBlock& block) const override {
    rates_.written(block);
    return group_for(rates_.rate_when_new(block.estimate), block.blocks);
  }
  std::uint8_t place(const MovedBlock& block) const override {
    return group_for(rates_.rate(block.estimate, static_cast<double>(block.age)), 1);
  }
  void observe(std::span<const SegmentFacts>, std::uint64_t clock) override {
    const double passed = static_cast<double>(clock - std::min(clock, observed_));
    if (passed < capacity_ / 64) return;
    observed_ = clock;
    rates_.sweep(clock);
    measure_streams(passed);
    for (double least = least_; merge_streams(least) > most_groups_;) least = std::max(2 * least, 1.0);
  }

 private:
  static constexpr unsigned kStreams = 16;
  static constexpr unsigned kOffset = 11;  // stream 11 begins where a block is written once in a device's worth of writes

  std::uint8_t group_for(double rate, std::uint32_t blocks) const {
    const double at = std::floor(kOffset - std::log2(rate * capacity_));
    const auto stream = static_cast<unsigned>(std::clamp(at, 0.0, kStreams - 1.0));
    placed_[stream].fetch_add(blocks, std::memory_order_relaxed);
    return group_of_[stream].load(std::memory_order_relaxed);
  }

  // How many blocks live in each stream: what is placed there, times how long it stays.
  void measure_streams(double passed) {
    const double kept = std::exp(-passed / (capacity_ / 4));
    for (unsigned i = 0; i < kStreams; ++i) {
      const double placed = static_cast<double>(placed_[i].exchange(0, std::memory_order_relaxed)) / passed;
      flow_[i] = flow_[i] * kept + (1 - kept) * placed;
    }
  }

  // A stream with few blocks would keep a segment open in which more dies than it is worth: it joins the next colder
  // one, the coldest the next hotter. Returns how many groups there are.
  unsigned merge_streams(double least) {
    double waiting = 0;
    unsigned first = 0, last_group = kStreams - 1, count = 0;
    for (unsigned i = 0; i < kStreams; ++i) {
      waiting += flow_[i] * capacity_ * std::min(1.0, std::exp2(i + 0.5 - kOffset));
      const bool enough = waiting >= least && waiting > 0;
      if (!enough && i + 1 < kStreams) continue;
      const unsigned group = enough || !count ? i : last_group;
      for (; first <= i; ++first) group_of_[first].store(static_cast<std::uint8_t>(group), std::memory_order_relaxed);
      last_group = group;
      waiting = 0;
      count += enough;
    }
    return count;
  }

  const unsigned most_groups_;
  const double capacity_, least_;
  mutable DeathRates rates_;
  mutable std::array<std::atomic<std::uint64_t>, kStreams> placed_{};  // by stream, since the last observation
  std::array<double, kStreams> flow_{};                                // by stream, blocks per block of log clock
  std::array<std::atomic<std::uint8_t>, kStreams> group_of_{};
  std::uint64_t observed_ = 0;
};

}  // namespace

std::unique_ptr<Placement> make_learned(const Parameters& p, const PlacementScale& scale) {
  return std::make_unique<Learned>(group_count(p, scale, 16, 1), scale, p.number("memory", 1, 0.01, 100),
                                   p.number("least", 1, 0, 1000));
}

}  // namespace varve::cleaner
