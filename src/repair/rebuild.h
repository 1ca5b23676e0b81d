// One new checkpoint from everything that can be believed. Nothing that the old one needs is overwritten before the
// superblocks switch: a crash on the way leaves the filesystem as it was.
#pragma once

#include "check/check.h"
#include "format/superblock.h"
#include "repair/action.h"

namespace varve::repair {

struct RebuildOptions {
  bool keep_log = false;     // chunks after the checkpoint are to be replayed on the result: names and links are left alone
  Serial above;              // the new checkpoint's number is higher than this, too
  bool only_safe = false;    // Errc::needs_fsck instead of the switch if something is lost, made up or moved
  std::uint64_t map_memory = 64 << 20;  // bytes of `.mfile` that are made at a time
};

// Errc::no_space when the free blocks are too few. The result is not marked clean: the next mount makes it so.
Status rebuild(io::BlockDevice& device, const format::Superblock& super, const RebuildOptions& options, ActionLog& actions,
               check::Progress* progress);

}  // namespace varve::repair
