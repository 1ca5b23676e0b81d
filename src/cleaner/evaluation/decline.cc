// Minimum declining cost with rates that are measured instead of estimated: how fast live blocks die is counted for all
// segments of one group and about one age together, in octaves of age. Estimates of single blocks may be stale or mere
// noise; what the placement makes of them is judged here by its outcome. Where all die at one rate this is greedy.
//
// Per block of rate r, waiting is worth ((1-v)/v + ln v)/r at live share v: the stationarity condition of ideal separation
// (docs/cleaning.md); MDC's E²/Λ is its first term.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class Decline final : public Evaluation {
 public:
  explicit Decline(double memory) : memory_(memory) {}
  std::string_view name() const override { return "decline"; }

  void observe(std::span<const SegmentFacts> segments, std::uint64_t clock) override {
    const double passed = static_cast<double>(clock - std::min(clock, clock_));
    clock_ = clock;
    forget(segments, passed);
    std::unordered_map<std::uint64_t, Seen> now;
    now.reserve(segments.size());
    for (const SegmentFacts& s : segments) {
      const std::uint64_t filled = clock - std::min(clock, s.sealed);
      const auto before = seen_.find(s.id.v);
      if (before != seen_.end() && before->second.filled == filled && before->second.live >= s.live) {
        Cell& cell = cells_[group_of(s)][octave_of(s)];
        cell.deaths += before->second.live - s.live;
        cell.exposure += 0.5 * (before->second.live + s.live) * passed;
      }
      now[s.id.v] = {filled, s.live};
    }
    seen_ = std::move(now);
  }

  void evaluate(std::span<const SegmentFacts> segments, std::span<double> scores) const override {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const double v = segments[i].utilisation();
      scores[i] = v >= 1 ? 0 : ((1 - v) / v + std::log(v)) / rate_of(segments[i]);
    }
  }

 private:
  static constexpr unsigned kOctaves = 64, kGroups = 17;  // the last for chain and nodes
  struct Cell {
    double deaths = 0, exposure = 0;  // blocks; blocks · log clock
  };
  struct Seen {
    std::uint64_t filled = 0;  // log clock; names the segment's present life
    std::uint32_t live = 0;
  };

  static unsigned group_of(const SegmentFacts& s) { return std::min<unsigned>(s.group, kGroups - 1); }
  static unsigned octave_of(const SegmentFacts& s) {
    return std::min(static_cast<unsigned>(std::log2(static_cast<double>(s.sealed) + 1)), kOctaves - 1);
  }

  // What lies `memory_` device writes back counts for 1/e.
  void forget(std::span<const SegmentFacts> segments, double passed) {
    double all = 1;
    for (const SegmentFacts& s : segments) all += s.blocks;
    const double kept = std::exp(-passed / (memory_ * all));
    for (auto& group : cells_)
      for (Cell& cell : group) cell.deaths *= kept, cell.exposure *= kept;
  }

  // Of one block. Where little was seen, as if each block died once in its age.
  double rate_of(const SegmentFacts& s) const {
    constexpr double kPrior = 20;  // deaths
    const Cell& cell = cells_[group_of(s)][octave_of(s)];
    return (cell.deaths + kPrior) / (cell.exposure + kPrior * static_cast<double>(s.sealed + s.blocks));
  }

  const double memory_;
  std::uint64_t clock_ = 0;
  std::array<std::array<Cell, kOctaves>, kGroups> cells_{};
  std::unordered_map<std::uint64_t, Seen> seen_;
};

}  // namespace

std::unique_ptr<Evaluation> make_decline(const Parameters& p) {
  return std::make_unique<Decline>(p.number("memory", 1, 0.01, 100));
}

}  // namespace varve::cleaner
