// The placements that come with Varve; registry.cc gives them their names.
#pragma once

#include "cleaner/placement.h"

namespace varve::cleaner {

std::unique_ptr<Placement> make_unsplit(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_split(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_sfs(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_dac(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_sepbit(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_age_chain(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_interval(const Parameters&, const PlacementScale&);
std::unique_ptr<Placement> make_learned(const Parameters&, const PlacementScale&);

// For the parameter that says how many groups there are.
unsigned group_count(const Parameters& parameters, const PlacementScale& scale, unsigned otherwise, unsigned least);

}  // namespace varve::cleaner
