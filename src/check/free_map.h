// `.ffile` against the claims: bitmaps and counters of all segments.
#pragma once

#include "check/claims.h"
#include "check/map_walk.h"

namespace varve::check {

void check_free_map(Context& context, const Claims& claims, MapWalk& map);

}  // namespace varve::check
