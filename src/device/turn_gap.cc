#include "device/turn_gap.h"

#include <algorithm>

namespace varve::device {

namespace {

constexpr std::uint32_t kSamples = 4, kTries = 16;      // of each gap, before the best one is chosen
constexpr double kWeight = 1.0 / 8;                     // of the newest sample, but for the first ones
constexpr double kWorth = 0.6, kStillWorth = 0.8;       // a gap must take less than this share of the time without one
constexpr double kNoDisk = 1.5;                         // on a disk none takes that many times as long
constexpr double kLeastTurnNs = 2.5e6;                  // 15 000 rpm take 4 ms
constexpr std::uint64_t kMostNs = 40'000'000;           // what takes longer waited for something else
constexpr std::uint64_t kSoonNs = 20'000'000;           // what comes later comes at any place of the turn, whatever was left
constexpr std::uint64_t kProbeEvery = 64, kOtherEvery = 512;  // choices
constexpr std::uint64_t kPause = 4096;  // choices, before all are tried once more; four times as many after each time in vain

}  // namespace

std::size_t TurnGap::best_index() const {
  return static_cast<std::size_t>(std::ranges::min_element(means_, {}, &Mean::ns) - means_.begin());
}

TurnGap::Choice TurnGap::choose(bool commit) {
  if (!learns_) return {commit ? fixed_ : 0, fixed_ > 0};
  const Lock lock(mutex_);
  if (!commit) return {0, phase_ == Phase::gaining};
  ++choices_;
  const std::size_t index = chosen();
  ++means_[index].tries;
  return {kBlocks[index], phase_ == Phase::gaining};
}

std::size_t TurnGap::chosen() {
  if (phase_ == Phase::without) {
    if (choices_ < next_trial_ || means_[0].samples < kSamples || means_[0].ns < kLeastTurnNs) return 0;
    try_all();
  }
  if (phase_ == Phase::trying) {
    const auto unknown = std::ranges::find_if(means_, [](const Mean& mean) { return mean.samples < kSamples && mean.tries < kTries; });
    if (unknown != means_.end()) return static_cast<std::size_t>(unknown - means_.begin());
    phase_ = Phase::gaining;
    if (means_[best_index()].ns < kWorth * means_[0].ns) pause_ = 0;
    else give_up();
  }
  if (phase_ == Phase::gaining && means_[best_index()].ns >= kStillWorth * means_[0].ns) give_up();
  return phase_ == Phase::gaining ? probed() : 0;
}

// The best one, or one that it is compared with.
std::size_t TurnGap::probed() {
  const std::size_t best = best_index();
  if (choices_ % kOtherEvery == 0) return choices_ / kOtherEvery % kBlocks.size();
  if (choices_ % kProbeEvery) return best;
  switch (choices_ / kProbeEvery % 3) {
    case 0: return 0;
    case 1: return best - 1;
    default: return std::min(best + 1, kBlocks.size() - 1);
  }
}

void TurnGap::try_all() {
  phase_ = Phase::trying;
  std::fill(means_.begin() + 1, means_.end(), Mean());
}

void TurnGap::give_up() {
  phase_ = Phase::without;
  pause_ = pause_ ? 4 * pause_ : kPause;
  next_trial_ = choices_ + pause_;
}

void TurnGap::observe(const Write& write) {
  const Lock lock(mutex_);
  if (!learns_ || write.lsn <= last_) return;
  const bool tells = write.before && last_ + 1 == write.lsn && write.began_ns >= last_ns_ && write.began_ns - last_ns_ < kSoonNs;
  const std::uint64_t took = write.ended_ns - write.began_ns;
  if (tells && took <= kMostNs) note(*write.before, static_cast<double>(took));
  last_ = write.lsn;
  last_ns_ = write.ended_ns;
}

void TurnGap::note(std::uint32_t blocks, double ns) {
  const auto found = std::ranges::find(kBlocks, blocks);
  if (found == kBlocks.end()) return;
  Mean& mean = means_[static_cast<std::size_t>(found - kBlocks.begin())];
  if (mean.samples == 0) mean.ns = ns;
  mean.samples = std::min(mean.samples + 1, 1000U);
  mean.ns += (ns - mean.ns) * std::max(kWeight, 1.0 / mean.samples);
  if (phase_ != Phase::without && mean.samples >= kSamples && mean.ns > kNoDisk * means_[0].ns) give_up();
}

std::uint32_t TurnGap::best() const {
  const Lock lock(mutex_);
  return phase_ == Phase::gaining ? kBlocks[best_index()] : fixed_;
}

}  // namespace varve::device
