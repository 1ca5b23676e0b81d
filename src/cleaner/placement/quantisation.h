// How SFS divides segments into groups by hotness (Min et al., 2012): each group is known by its centre.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace varve::cleaner {

enum class Quantiser : std::uint8_t {
  iterative,    // centres move to the mean of the segments nearest to them, three rounds at most
  equal_range,  // equal slices of the range of hotness ("equi-height" in the paper)
  equal_count,  // equal numbers of segments ("equi-width" in the paper)
};

// New centres, ascending; `before` are the present ones (empty at first). With no more segments than groups the
// hotnesses themselves are centres.
std::vector<double> quantise(Quantiser kind, std::span<const double> hotness, std::size_t groups,
                             std::span<const double> before);

// The group whose centre is nearest: the index into `centres`. Centres must not be empty.
std::size_t nearest(std::span<const double> centres, double hotness);

}  // namespace varve::cleaner
