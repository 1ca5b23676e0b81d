// The strategies that come with Varve, for the registry, and one for a change of size.
#pragma once

#include "cleaner/strategy.h"

namespace varve::cleaner {

std::unique_ptr<Strategy> make_adaptive(const Parameters& parameters);
std::unique_ptr<Strategy> make_combined(const Parameters& parameters);
std::unique_ptr<Strategy> make_compacting(const Parameters& parameters);
std::unique_ptr<Strategy> make_copying(const Parameters& parameters);
std::unique_ptr<Strategy> make_defragmenting(const Parameters& parameters);
std::unique_ptr<Strategy> make_hole_plugging(const Parameters& parameters);
std::unique_ptr<Strategy> make_threaded(const Parameters& parameters);

std::unique_ptr<Strategy> make_leaving();  // not in the registry

}  // namespace varve::cleaner
