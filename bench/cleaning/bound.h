// What write amplification can be at best when per-block rates are known and each class of equal rates cleans in FIFO
// order. Class i gets space a_i per live block, so that the sum of n_i·r_i/(1-v_i) is smallest with the sum of
// n_i·a_i = N/u and a(v) = -ln v/(1-v). Stationarity: (1-v)/v + ln v = r_i/L; L is found by bisection. For one class and finite
// segments of b blocks greedy is a little better: (H_b - H_x)/(b - x) = 1/(u·b), WA = b/(b - x). The same factor is
// applied to mixtures, where it is an approximation (about 1 %). docs/cleaning.md has the derivation.
#pragma once

#include <cstdint>
#include <span>

namespace varve::bench {

// `rates` sum to 1; `utilisation`: live over the space that holds it.
double bound(std::span<const double> rates, double utilisation);
double fifo_bound(double utilisation);  // equal rates, large segments
double greedy_bound(double utilisation, std::uint32_t segment_blocks);  // equal rates

}  // namespace varve::bench
