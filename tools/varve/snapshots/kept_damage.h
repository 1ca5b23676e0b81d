// What a snapshot has and cannot be read, in words that lead to it.
#pragma once

#include <string>

#include "compare/question.h"

namespace varve::tool {

// Asks the same, and says of damage which file of which snapshot has it. `place`: the filesystem, as commands name it; `snapshot`: the name
// of what is asked about.
compare::Ask telling_of_damage(compare::Ask ask, std::string place, std::string snapshot);

}  // namespace varve::tool
