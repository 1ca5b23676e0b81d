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
//
// What goes on where the arm stands waits for no turn: reads, since a disk has read ahead, and writes that its cache has had waiting.
// A write that was not there in time has missed its place (let_go()) and waits for it to come round.
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
  // Nothing more was there to be written when the last write ended: as after a flush.
  void let_go() { goes_on_ = false; }
  std::uint64_t at() const { return at_; }
  double exponent() const { return exponent_; }
  double rate_at(std::uint64_t offset) const;

 private:
  bool is_in_time(std::uint64_t offset, bool write) const { return offset == at_ && (goes_on_ || !write); }
  double turns_to(std::uint64_t offset) const;  // the whole ones are the track, the rest is the angle
  double seek_seconds(std::uint64_t offset) const;

  const SpindleParameters parameters_;
  const double exponent_, turn_;
  std::uint64_t at_ = 0;
  double lead_ = 0;      // turns that the platters are ahead of a clock of their speed
  bool goes_on_ = true;  // a write at at_ was there in time
  bool wrote_ = false;   // the last time
};

}  // namespace varve::bench
