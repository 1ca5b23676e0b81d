#include "models/spindle.h"

#include <cmath>

namespace varve::bench {

namespace {

// p of 2/((p + 1)(p + 2)) = share.
double exponent_for(double share) { return (-3 + std::sqrt(1 + 8 / share)) / 2; }

double share_of_one(double turns) { return turns - std::floor(turns); }

}  // namespace

Spindle::Spindle(const SpindleParameters& parameters)
    : parameters_(parameters),
      exponent_(exponent_for((parameters.average_seek - parameters.next_track) / (parameters.full_stroke - parameters.next_track))),
      turn_(60 / parameters.rpm) {}

double Spindle::rate_at(std::uint64_t offset) const {
  const double inwards = static_cast<double>(offset) / static_cast<double>(parameters_.size);
  return parameters_.outer_rate + (parameters_.inner_rate - parameters_.outer_rate) * inwards;
}

// Turns from the beginning of the disk to here if it were read in a row: the integral of 1/(rate·turn) over the offset.
double Spindle::turns_to(std::uint64_t offset) const {
  const double slope = (parameters_.inner_rate - parameters_.outer_rate) / static_cast<double>(parameters_.size);
  const double seconds = slope == 0 ? static_cast<double>(offset) / parameters_.outer_rate
                                    : std::log(rate_at(offset) / parameters_.outer_rate) / slope;
  return seconds / turn_;
}

double Spindle::seek_seconds(std::uint64_t offset) const {
  if (std::floor(turns_to(offset)) == std::floor(turns_to(at_))) return 0;  // the same track
  const double distance = std::abs(static_cast<double>(offset) - static_cast<double>(at_));
  const double share = distance / static_cast<double>(parameters_.size);
  return parameters_.next_track + (parameters_.full_stroke - parameters_.next_track) * std::pow(share, exponent_);
}

Spindle::Move Spindle::look(std::uint64_t offset, std::uint64_t length, bool write, double now) const {
  Move move;
  move.transfer = static_cast<double>(length) / rate_at(offset);
  if (is_in_time(offset, write)) return move;
  move.seek = seek_seconds(offset);
  if (write && (move.seek > 0 || !wrote_)) move.seek += parameters_.write_settle;
  move.turn = share_of_one(turns_to(offset) - (now + move.seek) / turn_ - lead_) * turn_;
  return move;
}

Spindle::Move Spindle::go(std::uint64_t offset, std::uint64_t length, bool write, double now, Energy& energy) {
  const Move move = look(offset, length, write, now);
  // The disk had it in its buffer, and was there in time: from here on its angle counts.
  if (is_in_time(offset, write)) lead_ = share_of_one(turns_to(offset) - now / turn_);
  at_ = offset + length;
  goes_on_ = true;
  wrote_ = write;
  energy.spend(PowerState::seek, move.seek, parameters_.seek_watts);
  energy.spend(PowerState::turn, move.turn, parameters_.turn_watts);
  energy.spend(write ? PowerState::write : PowerState::read, move.transfer, write ? parameters_.write_watts : parameters_.read_watts);
  return move;
}

}  // namespace varve::bench
