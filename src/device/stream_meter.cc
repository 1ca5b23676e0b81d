#include "device/stream_meter.h"

#include <algorithm>

namespace varve::device {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;   // in longer writes a copy would not be seen
constexpr std::uint64_t kTellsRate = 32 << 10;  // shorter ones take what a request takes
constexpr double kRateBytes = 64 << 20;         // the rate is that of so much
constexpr double kCopy = 1.0 / 8;               // of a unit: what takes so much longer has copied
constexpr double kDear = 1.0 / 2;               // no seek takes that long
constexpr std::uint32_t kEnough = 16;           // writes on each side of a limit
constexpr std::uint32_t kRemembered = 4096;     // at one distance; then what was before counts half

}  // namespace

// kMost: it does not go on where its unit was written last, which is dear for other reasons, or its unit is not remembered.
unsigned StreamMeter::distance_of(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = begin / unit_, last = (end - 1) / unit_;
  const auto found = std::ranges::find(recent_, first, &Unit::number);
  const bool goes_on = found != recent_.end() && found->end == begin;
  const auto distance = static_cast<unsigned>(found - recent_.begin());
  std::erase_if(recent_, [&](const Unit& unit) { return unit.number == first || unit.number == last; });
  recent_.insert(recent_.begin(), Unit{last, end});
  if (recent_.size() > kMost) recent_.pop_back();
  return goes_on && end - begin <= kMostBytes ? distance : kMost;
}

StreamMeter::Pace StreamMeter::pace_of(unsigned distance, std::uint64_t length, double ns) {
  const double each = row_ns_ / row_bytes_;
  const auto takes = [&](double copy) { return ns > (static_cast<double>(length) + copy * static_cast<double>(unit_)) * each; };
  const bool slow = takes(kCopy);
  if (distance == 0 && length >= kTellsRate && !slow) {
    row_bytes_ += static_cast<double>(length);
    row_ns_ += ns;
    const double keep = std::min(1.0, kRateBytes / row_bytes_);
    row_bytes_ *= keep;
    row_ns_ *= keep;
  }
  return !slow ? Pace::quick : takes(kDear) ? Pace::dear : Pace::slow;
}

void StreamMeter::observe(std::uint64_t offset, std::uint64_t length, std::uint64_t began_ns, std::uint64_t ended_ns,
                          const Beside& beside) {
  if (unit_ == 0 || length == 0) return;
  const Lock lock(mutex_);
  // A device serves one write after the other: it had this one when the one before was done.
  const std::uint64_t had_it = std::max(began_ns, free_at_ns_);
  free_at_ns_ = std::max(free_at_ns_, ended_ns);
  const unsigned distance = distance_of(before_ + offset, before_ + offset + length);
  if (distance >= kMost || ended_ns <= had_it) return;
  const Pace pace = pace_of(distance, length, static_cast<double>(ended_ns - had_it));
  if (pace != Pace::quick && beside.late) return;
  count(counts_[distance], pace);
  if (pace != Pace::quick || limit() != 0) judge();
  if (beside.durable) return;
  count(plain_[distance], pace);
  if (pace == Pace::quick && distance > proven()) prove(distance);
}

void StreamMeter::count(Count& count, Pace pace) {
  ++(pace == Pace::quick ? count.quick : count.slow);
  if (pace == Pace::dear) ++count.dear;
  if (count.all() > kRemembered) count = {count.quick / 2, count.slow / 2, count.dear / 2};
}

StreamMeter::Count StreamMeter::sum(const Counts& counts, unsigned first, unsigned end) {
  Count sum;
  for (unsigned distance = first; distance < end; ++distance)
    sum = {sum.quick + counts[distance].quick, sum.slow + counts[distance].slow, sum.dear + counts[distance].dear};
  return sum;
}

// What stays cheap with many places in between does so with few. Where single writes are slow for other reasons they are so anywhere.
void StreamMeter::prove(unsigned distance) {
  const Count near = sum(plain_, 0, distance), beyond = sum(plain_, distance, kMost);
  if (beyond.all() < kEnough) return;
  const bool is_rare = 8 * beyond.slow < beyond.all();
  const bool is_usual = near.all() >= kEnough && 4 * std::uint64_t{beyond.slow} * near.all() <= 5 * std::uint64_t{near.slow} * beyond.all();
  if (is_rare || is_usual) proven_.store(distance, std::memory_order_relaxed);
}

// The number that tells quick from slow writes with the fewest errors, of two equals the greater. Where near ones are slow as well, or
// far ones quick, there is no limit to be seen. Going on at one place says little of taking turns, as any disk seeks. So there is one
// stream only where nearly all turns of two cost copies.
void StreamMeter::judge() {
  const Count all = sum(counts_, 1, kMost), &one = counts_[0], &two = counts_[1];
  const bool is_one = one.all() >= kEnough && 8 * one.slow < one.all() && two.all() >= kEnough && 4 * two.dear >= 3 * two.all();
  Count near;
  unsigned best = is_one ? 1 : 0;
  std::uint32_t fewest = all.all();
  for (unsigned distance = 1; distance < kMost; ++distance) {
    const Count far{all.quick - near.quick, all.slow - near.slow};
    const bool splits = near.all() >= kEnough && far.all() >= kEnough && 8 * near.slow < near.all() && far.slow > far.quick;
    if (splits && near.slow + far.quick <= fewest) {
      fewest = near.slow + far.quick;
      best = distance;
    }
    near = {near.quick + counts_[distance].quick, near.slow + counts_[distance].slow};
  }
  const bool was_none = limit() == 1 && two.all() >= kEnough && 2 * two.dear < two.all();
  if (best || was_none) limit_.store(best, std::memory_order_relaxed);
}

}  // namespace varve::device
