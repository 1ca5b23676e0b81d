// What a word that is not known was probably meant to be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

// How many letters to insert, remove, change or swap (optimal string alignment).
std::size_t distance_of(std::string_view a, std::string_view b);

// The name that is nearest, if one is near: a third of the letters may differ. Else "".
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace varve
