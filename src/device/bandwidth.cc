#include "device/bandwidth.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::device {

namespace {
constexpr double kAimNs = 50e6;
constexpr std::uint64_t kWindowNs = 50'000'000;
constexpr std::uint64_t kWindowBytes = 8u << 20;
constexpr std::uint64_t kTellingBytes = 512u << 10;
constexpr double kSmoothing = 0.25;  // share of a new measurement

double smoothed(double before, double measured) { return before == 0 ? measured : before + kSmoothing * (measured - before); }
}  // namespace

void Bandwidth::started(std::uint64_t bytes, std::uint64_t now) {
  const Lock lock(mutex_);
  if (in_flight_ == 0) {
    since_ = now;
    open_pile(now);
  }
  in_flight_ += bytes;
  peak_ = std::max(peak_, in_flight_);
}

void Bandwidth::done(std::uint64_t bytes, std::uint64_t now) {
  const Lock lock(mutex_);
  busy_ns_ += now - std::min(now, since_);
  since_ = std::max(since_, now);
  INVARIANT(in_flight_ >= bytes);
  in_flight_ -= std::min(in_flight_, bytes);
  landed_ += bytes;
  pile_ += bytes;
  if (in_flight_ == 0 || pile_ >= kWindowBytes) close_pile(now);
  if (busy_ns_ >= kWindowNs || landed_ >= kWindowBytes) close_window();
}

void Bandwidth::open_pile(std::uint64_t now) {
  pile_ = 0;
  pile_since_ = now;
}

// However little was under way: so long it took.
void Bandwidth::close_pile(std::uint64_t now) {
  if (pile_ >= kTellingBytes && now > pile_since_) {
    pile_rate_ = smoothed(pile_rate_, static_cast<double>(pile_) / static_cast<double>(now - pile_since_));
    per_second_ = static_cast<std::uint64_t>(pile_rate_ * 1e9);
  }
  open_pile(now);
}

// A window in which the device had little to do says nothing about what it can do.
void Bandwidth::close_window() {
  const bool saturated = peak_ >= limit() / 2;
  if (saturated && busy_ns_ > 0) {
    const double measured = static_cast<double>(landed_) / static_cast<double>(busy_ns_);
    rate_ = smoothed(rate_, measured);
    limit_ = std::clamp(static_cast<std::uint64_t>(rate_ * kAimNs), least_, most_);
  }
  INVARIANT(limit() >= least_ && limit() <= most_);
  peak_ = in_flight_;
  landed_ = busy_ns_ = 0;
}

}  // namespace varve::device
