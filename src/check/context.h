// What all passes of one check share.
#pragma once

#include <unordered_set>

#include "check/check.h"

namespace varve::check {

struct Context {
  io::BlockDevice& device;
  const CheckOptions& options;
  Progress* progress;
  Report& report;
  bool verifies_data = options.verify_data;
  // Part of a tree could not be read: what compares everything with everything would only repeat that.
  bool incomplete = false;
  std::unordered_set<std::uint64_t> bad_nodes = {};  // addresses, reported: maps are walked more than once
  std::string part = {};  // of the filesystem, where it is not the newest state: comes before what is said
  bool in_snapshot = false;    // `part` is a snapshot's tree: what is wrong there concerns nothing else
  std::string snapshot = {};   // its name
  bool kept_damaged = false;   // part of such a tree could not be read
  std::uint64_t held_blocks = 0, held_data = 0;  // that only snapshots have; of them, blocks of files

  const format::Superblock& super() const { return report.super; }
  ProblemLog& problems() { return report.problems; }
  void add(Code code, Where where, const std::string& detail = {}) {
    if (in_snapshot) report.problems.add(Code::snapshot_damaged, where, fmt::format("{}{}: {}", part, text_of(code), detail), snapshot);
    else report.problems.add(code, where, part + detail, snapshot);
  }
  void add_block(Code code, Where where, std::uint64_t file_block, const std::string& detail = {}) {
    report.problems.add_block(code, where, file_block, detail, snapshot);  // the part is that snapshot's
  }
  void update(const char* phase, std::uint64_t done, std::uint64_t total) {
    if (progress) progress->update(phase, done, total);
  }
};

}  // namespace varve::check
