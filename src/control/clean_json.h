// Cleaning that `varve clean` asks for, as JSON: what is to be done, and what came of it. Used by the daemon, and by the
// tool itself for images that are not mounted.
#pragma once

#include <nlohmann/json.hpp>

#include "cleaner/history.h"
#include "base/result.h"
#include "fs/clean_job.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::CleanRequest& request);
// Errc::invalid: not what to_json() makes.
Result<fs::CleanRequest> clean_request_from(std::string_view text);

// Blocks are of 4 KiB; "segment_blocks" says how many make a segment.
nlohmann::ordered_json to_json(const fs::CleanState& state);

// Rounds of cleaning as `varve history` and the bench's plot read them.
nlohmann::ordered_json to_json(const cleaner::PastRound& round);
nlohmann::ordered_json to_json(const std::vector<cleaner::PastRound>& rounds);  // an array of them

}  // namespace varve::fuse
