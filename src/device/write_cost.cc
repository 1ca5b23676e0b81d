#include "device/write_cost.h"

#include <algorithm>

namespace varve::device {

// The mean of the first ones, then an exponential one over some thirty.
void WriteCost::Mean::add(double value, const DeviceSpan& took) {
  constexpr double kRemembered = 32;
  ++samples;
  spent += took.ns;
  weight = std::min(weight + took.weight, kRemembered);
  ns += took.weight / weight * (value - ns);
}

void WriteCost::restore(std::uint32_t in_row, std::uint32_t scattered) {
  const Lock lock(mutex_);
  if (in_row) sequential_ = {static_cast<double>(in_row), kLeastSamples, 0};
  if (scattered) scattered_ = {static_cast<double>(scattered), kLeastSamples, 0};
}

void WriteCost::forget_scattered() {
  const Lock lock(mutex_);
  scattered_ = {};
}

std::uint32_t WriteCost::in_row() const {
  const Lock lock(mutex_);
  return sequential_.known() ? static_cast<std::uint32_t>(std::clamp(sequential_.ns, 0.0, 4e9)) : 0;
}

std::uint32_t WriteCost::scattered() const {
  const Lock lock(mutex_);
  return scattered_.known() ? static_cast<std::uint32_t>(std::clamp(scattered_.ns, 0.0, 4e9)) : 0;
}

void WriteCost::observe(std::uint32_t requests, std::uint32_t blocks, const DeviceSpan& took) {
  if (requests == 0) return;
  const Lock lock(mutex_);
  const double per_block = static_cast<double>(took.ns) / blocks;
  if (blocks >= requests * kMany) {
    sequential_.add(per_block, took);
    if (++since_scattered_ >= kForgotten) scattered_ = {};
  } else if (requests >= kPieces && blocks <= requests * kFew) {
    scattered_.add(per_block, took);
    since_scattered_ = 0;
  }
}

void WriteCost::observe_slow(std::uint64_t ns) {
  const Lock lock(mutex_);
  scattered_.add(static_cast<double>(ns), ns);
  since_scattered_ = 0;
}

void WriteCost::observe_read(const DeviceSpan& took) {
  const Lock lock(mutex_);
  reads_.add(static_cast<double>(took.ns), {0, took.weight});
}

void WriteCost::observe_handling(std::uint64_t blocks, const DeviceSpan& took) {
  if (blocks == 0) return;
  const Lock lock(mutex_);
  handling_.add(static_cast<double>(took.ns) / static_cast<double>(blocks), {0, took.weight});
}

double WriteCost::handling() const {
  const Lock lock(mutex_);
  return comparable(handling_) ? handling_.ns / sequential_.ns : kUsualHandling;
}

bool WriteCost::knows_in_row() const {
  const Lock lock(mutex_);
  return sequential_.known();
}

bool WriteCost::knows_scattered() const {
  const Lock lock(mutex_);
  return scattered_.known();
}

std::uint64_t WriteCost::scattered_within(std::uint64_t ns) const {
  const Lock lock(mutex_);
  return scattered_.known() ? static_cast<std::uint64_t>(static_cast<double>(ns) / std::max(scattered_.ns, 1.0)) : 0;
}

bool WriteCost::seeks() const {
  const Lock lock(mutex_);
  return reads_.known() && reads_.ns > kSeekNs;
}

double WriteCost::assumed() const {
  const bool may_seek = !reads_.known() || reads_.ns > kSeekNs;
  return rotational_ && may_seek ? kRotationalFactor : kUsualFactor;
}

double WriteCost::factor() const {
  const Lock lock(mutex_);
  return comparable(scattered_) ? std::max(1.0, scattered_.ns / sequential_.ns) : assumed();
}

}  // namespace varve::device
