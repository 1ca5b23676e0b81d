// `.mfile` against the claims: the recorded owner of every live block.
#pragma once

#include "check/claims.h"
#include "check/map_walk.h"

namespace varve::check {

// Walks the trees again and claims everything into the given object; for locating what the sums only tell to exist.
using ClaimAgain = std::function<void(Claims&)>;

// Also reports blocks with several owners, because locating them takes the same second walk.
void check_reverse_map(Context& context, const Claims& claims, MapWalk& map, const ClaimAgain& claim_again);
void report_conflicts(Context& context, const Claims& claims, const ClaimAgain& claim_again);

}  // namespace varve::check
