#include "scrub/finding.h"

#include <fmt/format.h>

namespace varve::scrub {

const char* name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::superblock:
      return "superblock";
    case Finding::Kind::node:
      return "node";
    case Finding::Kind::data:
      return "data";
  }
  return "?";
}

std::string to_text(const Finding& f) {
  if (f.is_in_snapshot()) {
    Finding bare = f;
    bare.snapshots = 0;
    const std::string older = f.snapshots > 1 ? fmt::format(" and {} older", f.snapshots - 1) : "";
    return fmt::format("snapshot {}{}: {}", f.snapshot, older, to_text(bare));
  }
  switch (f.kind) {
    case Finding::Kind::superblock:
      return fmt::format("superblock at block {}: {}", f.address, f.error);
    case Finding::Kind::node:
      return fmt::format("{} node of level {} at block {}: {}", name_of(f.tree), f.level, f.address, f.error);
    case Finding::Kind::data:
      return fmt::format("inode {}, bytes {} to {} (block {}, {} of them): {}", f.ino, f.file_block << kBlockShift,
                         (f.file_block + f.blocks) << kBlockShift, f.address, f.blocks, f.error);
  }
  return f.error;
}

}  // namespace varve::scrub
