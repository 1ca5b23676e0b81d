// Answers to requests (requests.h) as JSON: cleaning, another size, snapshots.
#pragma once

#include <vector>

#include "base/json_text.h"
#include "base/result.h"
#include "cleaner/history.h"
#include "fs/snapshot_list.h"
#include "jobs/clean_job.h"
#include "jobs/resize_job.h"

namespace varve::control {

Json to_json(const jobs::CleanRequest& request);
// Errc::invalid: not what to_json() makes.
Result<jobs::CleanRequest> clean_request_from(const Json& json);

// Blocks are of 4 KiB; "segment_blocks" says how many make a segment.
Json to_json(const jobs::CleanState& state);

// Rounds of cleaning as `varve history` and the bench's plot read them.
Json to_json(const cleaner::PastRound& round);
Json to_json(const std::vector<cleaner::PastRound>& rounds);  // an array of them

Json to_json(const jobs::ResizeState& state);

Json to_json(const fs::SnapshotState& state);

}  // namespace varve::control
