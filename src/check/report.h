// What a check found out: problems and what was looked at.
#pragma once

#include <string>

#include "check/problem.h"
#include "format/superblock.h"

namespace varve::check {

struct Statistics {
  std::uint64_t inodes = 0;
  std::uint64_t directories = 0;
  std::uint64_t files = 0;
  std::uint64_t symlinks = 0;
  std::uint64_t entries = 0;   // in directories
  std::uint64_t orphans = 0;   // unlinked but open when the checkpoint was made
  std::uint64_t extents = 0;
  std::uint64_t data_blocks = 0;
  std::uint64_t unwritten_blocks = 0;
  std::uint64_t node_blocks = 0;      // with the superblock's image
  std::uint64_t held_blocks = 0;      // that only snapshots have, nodes among them
  std::uint64_t verified_blocks = 0;  // data blocks whose checksum was verified
};

struct Report {
  format::Superblock super;
  bool needs_recovery = false;  // chunks follow the checkpoint
  bool quick = false;           // clean, and not read further
  Statistics statistics;
  ProblemLog problems;

  std::uint64_t errors() const { return total(Severity::error); }
  std::uint64_t warnings() const { return total(Severity::warning); }

 private:
  std::uint64_t total(Severity severity) const;
};

// What there is to say besides the code's own sentence; of a file's blocks, which.
std::string detail_of(const Problem& problem);
// One line: "E406 block 17 inode 3: the recorded owner of a block is wrong: …".
std::string to_line(const Problem& problem, const std::string& name = {});  // `name`: of the inode, if known

}  // namespace varve::check
