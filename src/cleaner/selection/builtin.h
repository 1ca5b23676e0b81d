// The selections that come with Varve; registry.cc gives them their names.
#pragma once

#include "cleaner/selection.h"

namespace varve::cleaner {

std::unique_ptr<VictimSelection> make_best(const Parameters&);
std::unique_ptr<VictimSelection> make_d_choices(const Parameters&);
std::unique_ptr<VictimSelection> make_segregation(const Parameters&);
std::unique_ptr<VictimSelection> make_hybrid(const Parameters&);

}  // namespace varve::cleaner
