// The two maps against what the trees claim: `.ffile` says which blocks are free, `.mfile` whose the others are.
#pragma once

#include "check/claims.h"
#include "check/map_walk.h"

namespace varve::check {

// Bitmaps and counters of all segments.
void check_free_map(Context& context, const Claims& claims, MapWalk& map);

// Walks the trees again and claims everything into the given object; for locating what the sums only tell to exist.
using ClaimAgain = std::function<void(Claims&)>;

// The recorded owner of every live block.
void check_reverse_map(Context& context, const Claims& claims, MapWalk& map, const ClaimAgain& claim_again);
// Blocks with several owners.
void report_conflicts(Context& context, const Claims& claims, const ClaimAgain& claim_again);

}  // namespace varve::check
