// The mechanics of a disk: where its arm is, how its platters turn, how dense its tracks are.
#pragma once

#include <cstdint>

#include "models/power.h"

namespace varve::bench {

struct SpindleParameters {
  std::uint64_t size = 0;  // bytes
  double rpm = 5400;
  double outer_rate = 0, inner_rate = 0;                       // bytes a second from the medium
  double next_track = 0, average_seek = 0, full_stroke = 0;    // seconds, of reads
  double write_settle = 0;                                     // seconds more before a write
  double seek_watts = 0, read_watts = 0, write_watts = 0, turn_watts = 0;  // above idling
};

// Seeks as t1 + (tF − t1)·d^p, d the share of the stroke, with p such that the mean over random pairs is the average given:
// (t_avg − t1)/(t_F − t1) = 2/((p + 1)(p + 2)). Zones are linear from outside in, and the angle of each place is known.
class Spindle {
 public:
  explicit Spindle(const SpindleParameters& parameters);

  struct Move {
    double seek = 0, turn = 0, transfer = 0;  // seconds
    double seconds() const { return seek + turn + transfer; }
  };
  // What it would take from here, at `now` in seconds.
  Move look(std::uint64_t offset, std::uint64_t length, bool write, double now) const;
  // The same, and the arm is there then. Counts the energy above idling.
  Move go(std::uint64_t offset, std::uint64_t length, bool write, double now, Energy& energy);
  std::uint64_t at() const { return at_; }
  double exponent() const { return exponent_; }
  double rate_at(std::uint64_t offset) const;

 private:
  double angle_of(std::uint64_t offset) const;  // in turns
  double seek_seconds(std::uint64_t offset) const;

  const SpindleParameters parameters_;
  const double exponent_, turn_;
  std::uint64_t at_ = 0;
};

}  // namespace varve::bench
