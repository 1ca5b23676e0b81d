// The independent checker: a second opinion on a filesystem's bytes. It knows the format and nothing of the engine.
//
// Memory: one bit per device block, 8 bytes per 168 blocks, 32 bytes per segment, 32 bytes per inode, 16 bytes per directory entry, and
// the entries of the largest directory. With snapshots there are 17 more bits per device block, and 200 bytes per block that was moved for
// them. memory_for() is the sum of that and the process, with one name for each inode and without the largest directory.
// Reads only. One thread; the device may be shared.
#pragma once

#include <memory>

#include "check/report.h"
#include "io/block_device.h"

namespace varve::check {

class Progress {
 public:
  virtual ~Progress() = default;
  // `total` is an estimate and may be exceeded.
  virtual void update(const char* phase, std::uint64_t done, std::uint64_t total) = 0;
};

struct CheckOptions {
  bool verify_data = false;      // read all file blocks and compare their checksums
  bool skip_when_clean = false;  // trust a clean superblock that tells of no errors
  std::uint64_t memory_bytes = 0;  // of the whole process; 0: whatever it takes
};

// Whether it tells of errors since which nothing has read everything without finding any.
bool met_errors(const format::Superblock& super);

// What a check takes at most where the superblock's counts are right, the process itself included.
std::uint64_t memory_for(const format::Superblock& super);

// Errors only where nothing can be said: Errc::not_varve, Errc::unknown_feature, no superblock to start from
// (Errc::corrupt, Errc::io), or less memory than it takes (Errc::no_memory, which says how much). Everything else is in the report.
Result<Report> check(io::BlockDevice& device, const CheckOptions& options, Progress* progress = nullptr);

}  // namespace varve::check
