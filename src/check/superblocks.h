// Both superblock copies and what can be said about them without the trees.
#pragma once

#include "check/claims.h"
#include "check/context.h"

namespace varve::check {

// Reads both copies, reports what is wrong with them and returns the one to believe. None where something else than Varve
// stands in place of the first (Errc::not_varve), whatever is left of an old filesystem behind it.
Result<format::Superblock> choose_superblock(io::BlockDevice& device, ProblemLog& problems);

// Whether the log goes on after the checkpoint. Replaying it is the engine's business.
void probe_log(Context& context);

// The copy of the superblock that stands as the checkpoint's last node. Claims its block.
void check_image(Context& context, Claims& claims);

// Where the chain and the heads go on: over free blocks that nothing else is to use. After all claims.
void check_runs(Context& context, const Claims& claims);

// The counts that the superblock holds. After all claims.
void check_counts(Context& context, const Claims& claims);

}  // namespace varve::check
