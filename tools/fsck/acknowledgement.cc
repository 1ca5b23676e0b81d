#include "fsck/acknowledgement.h"

#include "base/clock.h"
#include "check/check.h"
#include "checkpoint/superblock_keeper.h"
#include "checkpoint/superblocks.h"
#include "fs/engine.h"
#include "fs/filesystem.h"
#include "store/store.h"

namespace varve::fsck {

bool ends_errors(const check::Report& report) {
  const format::Superblock& super = report.super;
  const bool found_nothing = !report.quick && !report.needs_recovery && report.errors() == 0 && report.warnings() == 0;
  return found_nothing && super.clean && check::met_errors(super) && format::check_features(super, format::Intent::write).ok();
}

// With a checkpoint of the engine, since the image that stands with the trees must say the same as the superblock.
Result<bool> acknowledge(io::BlockDevice& device, const check::Report& report, std::int64_t started) {
  const format::Superblock found = TRY(checkpoint::read_superblocks(device)).best;
  if (!found.clean || found.serial != report.super.serial || found.identity != report.super.identity) return false;
  fs::Options options;
  options.background = options.cleaner = false;
  const auto filesystem = TRY(fs::Filesystem::mount(device, options));
  format::ScrubMark mark;
  mark.started = started;
  mark.finished = Clock::system().now().seconds;
  mark.blocks = found.live_blocks;
  filesystem->engine().store().superblocks().set_scrub_mark(mark);
  TRY(filesystem->unmount());
  return true;
}

}  // namespace varve::fsck
