// Errors of the past are over when everything has been read since, and nothing was found: a scrub says so in the superblock, and so does a
// check with --data.
#pragma once

#include "check/report.h"
#include "io/block_device.h"

namespace varve::fsck {

// Whether this check, which has read all data, has something to say: there were errors, and no scrub has said that they are over.
bool ends_errors(const check::Report& report);

// Makes a checkpoint that says so of the state that was checked, as a scrub that ran from `started` (seconds since 1970) until now.
// False: the filesystem is no longer the one that was checked.
Result<bool> acknowledge(io::BlockDevice& device, const check::Report& report, std::int64_t started);

}  // namespace varve::fsck
