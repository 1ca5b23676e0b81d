// Rounds of cleaning as `varve history` and the bench's plot read them.
#pragma once

#include <nlohmann/json.hpp>

#include "cleaner/history.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const cleaner::PastRound& round);
nlohmann::ordered_json to_json(const std::vector<cleaner::PastRound>& rounds);  // an array of them

}  // namespace varve::fuse
