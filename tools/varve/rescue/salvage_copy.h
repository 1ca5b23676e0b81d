// Copies everything that can be read out of a mounted filesystem into a directory of the host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/filesystem.h"

namespace varve::tool {

struct SalvageLoss {
  std::string path;
  std::string what;
};

struct SalvageReport {
  std::uint64_t files = 0, directories = 0, symlinks = 0, others = 0;
  std::uint64_t bytes = 0;            // of data copied
  std::uint64_t damaged_blocks = 0;   // holes in the copies
  std::uint64_t loss_count = 0;
  std::vector<SalvageLoss> losses;    // the first kMostLosses

  static constexpr std::size_t kMostLosses = 10000;
  void lose(std::string path, std::string what);
};

using SalvageAdvance = std::function<Status(const SalvageReport&)>;

// `target` is created, or must be an empty directory, and becomes what the root is. Files, directories, symlinks, hard links, pipes, modes,
// times and extended attributes are copied, each directory once. Owners, device nodes and set-user-ID bits of others only for root. What
// cannot be copied is in the report, and what was copied is on the medium. An error: the target cannot be used, or the host's filesystem
// takes nothing more (full, read-only, broken).
// `advance` is called often with what has been copied so far; an error of it ends the copying.
Result<SalvageReport> salvage_copy(fs::Filesystem& filesystem, const std::string& target, const SalvageAdvance& advance);

}  // namespace varve::tool
