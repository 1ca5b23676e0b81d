// What the tools ask a mount for, and what came of it, as JSON: cleaning, another size, snapshots (control.h). Used by the daemon, and by
// the tools themselves for images that are not mounted.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/result.h"
#include "cleaner/history.h"
#include "fs/clean_job.h"
#include "fs/resize_job.h"
#include "fs/snapshot_list.h"

namespace varve::control {

Json to_json(const fs::CleanRequest& request);
// Errc::invalid: not what to_json() makes.
Result<fs::CleanRequest> clean_request_from(std::string_view text);

// Blocks are of 4 KiB; "segment_blocks" says how many make a segment.
Json to_json(const fs::CleanState& state);

// Rounds of cleaning as `varve history` and the bench's plot read them.
Json to_json(const cleaner::PastRound& round);
Json to_json(const std::vector<cleaner::PastRound>& rounds);  // an array of them

Json to_json(const fs::ResizeRequest& request);
Json to_json(const fs::ResizeState& state);
// Errc::invalid: not what to_json() makes.
Result<fs::ResizeRequest> resize_request_from(std::string_view text);

Json to_json(const fs::SnapshotState& state);

}  // namespace varve::control
