// How long until a block is written again: an estimate that every block carries in one byte (docs/format.md), in eight
// steps an octave of the stored clock's unit. 0: never written over yet, nothing is known.
#pragma once

#include <cstdint>

namespace varve::format {

// How long ago something was, in units of stored clocks. Those have 32 bits and begin anew at 0 when the log clock is
// 2^32 units on. So this is right for what is younger than that. What was written a moment after `now` is of no age.
std::uint32_t age_of(std::uint64_t now, std::uint32_t stored);

std::uint8_t encode_interval(double units);   // at least 1 unit; saturates at 2^31.75
double decode_interval(std::uint8_t code);    // units; 0 for code 0

// The estimate after one more interval was seen: exponential mean, a quarter for the newest.
std::uint8_t next_estimate(std::uint8_t code, double interval_units);

// Rewrites per 2^32 units, as `.ffile` adds them up (SegmentRecord::rate_sum); 0 for code 0.
std::uint64_t rate_of(std::uint8_t code);

}  // namespace varve::format
