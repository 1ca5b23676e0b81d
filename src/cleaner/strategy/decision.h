// What the adaptive strategy decides by: pure, so that each decision can be tested and repeated.
//
// A freed segment costs (1+m+c)·u/(1-u) by copying and (k+m+c)·u by hole-plugging, in units of one sequential segment write. u is the
// live share of the victims, and k what scattered writes cost against sequential ones. m are the nodes that come of each block that is
// moved, and c is what handling it costs beside writing it. So plugging wins if u > (k-1)/(k+m+c). After Matthews et al. 1997, where
// there is no c and whole segments are read; worked out in docs/cleaning.md.
#pragma once

#include <cstdint>
#include <string>

#include "cleaner/strategy/power_source.h"

namespace varve::cleaner {

struct Situation {
  bool for_room = true;     // clean segments run short
  bool told = false;        // somebody asked for cleaning: time and power are theirs to judge
  bool by_files = false;    // and named files
  Power power = Power::mains;
  double victims_live = 0;  // mean live share of segments with files that the policy would clean next; 1: nothing is worth it
  double clean = 0;         // share of all segments
  double spread = 0;        // share of the segments below the log's end that are clean: what compacting would close
  double write_factor = 1;  // k
  double metadata = 0;      // m
  double handling = 1;      // c
  bool knows_in_row = true, knows_scattered = true;  // the two of which k is made have been measured; else it is assumed
  double copying = 0, filling = 0;  // ns of the device for a block of users', by whole rounds (cost_ledger.h); 0: not known
  double plugging = 0;              // the same for a block that is moved into a hole
  std::string costs;                // the same in words
  bool seeks = false;       // it has been seen that reading here and there is slow
  bool has_plugging = false;  // there is such a strategy
};

struct Decision {
  enum class Kind : std::uint8_t { rest, copy, plug, compact, defragment };
  Kind kind = Kind::rest;
  double max_utilisation = 1;  // of victims
  bool threads = false;        // users' small pieces go into holes, too, while clean segments are short
  std::string why;
  bool operator==(const Decision&) const = default;
};

Decision decide(const Situation& situation);

// What must be tried before the device can be judged: k is assumed, and where it might be another, another strategy is better.
enum class Trial : std::uint8_t { none, copy, plug };
Trial trial_before(const Situation& situation);

// (k-1)/(k+m+c): the live share from which plugging holes is cheaper than copying.
double plugging_pays_from(double write_factor, double metadata, double handling);

}  // namespace varve::cleaner
