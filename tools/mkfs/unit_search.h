// Finds the unit that a device erases, and copies, as a whole, from places that are written in turn.
//
// Cards differ (A. Bergmann, lwn.net/Articles/428584). Most want a unit written from its beginning to its end: two places in one unit
// that take turns cost a copy each time, in two units they do not. Others take writes anywhere in an open unit: there one place more than
// units stay open is slow if each has a unit of its own, and quick if two share one. Some keep one unit open: then a write elsewhere
// costs as much as it is away, up to a whole unit.
#pragma once

#include <functional>
#include <string>

#include "mkfs/turns.h"

namespace varve::mkfs {

class UnitSearch {
 public:
  static constexpr std::uint64_t kLeastBytes = 2 << 20;  // of smaller ones several make a segment anyway

  using Say = std::function<void(const std::string&)>;

  // Looks from `base` on, where a unit begins whatever its size, and for units up to `most` bytes. `streams` units stay open at once.
  UnitSearch(TimedDevice& device, Turns& turns, std::uint64_t base, std::uint64_t most, unsigned streams, const Say& say)
      : device_(device), turns_(turns), base_(base), most_(most), streams_(streams), say_(say) {}

  // Bytes: a power of two, or three quarters of one; 0: none that explains all that was measured. What is found has been confirmed at
  // both ends of one unit, and where more than one stays open at the next boundary, too.
  Result<std::uint64_t> find();

 private:
  struct Kind {
    std::uint64_t places;  // that are written in turn
    Pace when_shared;      // of places that share units; where each has its own they are the other
  };

  Result<std::uint64_t> search(const Kind& kind);
  Result<Pace> spread(const Kind& kind, std::uint64_t distance);
  Result<bool> is_confirmed(const Kind& kind, std::uint64_t unit);
  Result<Pace> pairs(const Kind& kind, std::uint64_t unit, std::uint64_t first, std::uint64_t second);
  Result<std::uint64_t> find_single();
  Result<bool> is_confirmed_single(std::uint64_t unit, std::uint64_t whole_ns);
  Result<std::uint64_t> jump(std::uint64_t from, std::uint64_t to);

  TimedDevice& device_;
  Turns& turns_;
  const std::uint64_t base_, most_;
  const unsigned streams_;
  const Say& say_;
};

// Gives what is copied with a unit content: nothing is copied where there is none. In ns for kRowBytes, each.
Result<std::vector<std::uint64_t>> fill(TimedDevice& device, std::uint64_t at, std::uint64_t bytes);
inline constexpr std::uint64_t kFilledBytes = 4 << 20;

}  // namespace varve::mkfs
