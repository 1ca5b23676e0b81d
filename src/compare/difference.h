// All that differs between two snapshots, by inode: records put together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/question.h"
#include "compare/record.h"

namespace varve::compare {

struct Name {
  Ino directory;
  std::string name;

  auto operator<=>(const Name&) const = default;
};

struct BlockRun {
  std::uint64_t first = 0, length = 0;
  BlockState was = BlockState::hole, is = BlockState::hole;
};

// What has become of one inode. Those of which nothing has are in no list.
struct InodeChange {
  bool attributes_differ = false;
  std::optional<format::Attributes> before, after;  // if they differ: of the side where it is there
  bool xattrs = false, target = false;
  std::vector<BlockRun> runs;             // ascending, neighbours that are alike are one
  std::vector<Name> lost, gained;         // names of it that are there on one side only, sorted
  bool entries = false;                   // a directory: some of its names are others

  // An inode without links is one that a program had still open.
  bool was_there() const { return !attributes_differ || (before && before->nlink > 0); }
  bool is_there() const { return !attributes_differ || (after && after->nlink > 0); }
  bool content_differs() const;  // what a reader of the file sees, or may see: blocks that were written again count
};

// All blocks of a file that are no holes.
Result<std::vector<BlockRun>> runs_of(const Ask& ask, Serial snapshot, Ino ino);

class Difference {
 public:
  // Asks until everything has been told. Memory: about a hundred bytes for each inode that has changed.
  static Result<Difference> find(const Ask& ask, Serial before, Serial after);

  const std::map<Ino, InodeChange>& inodes() const { return inodes_; }

 private:
  void take(Record&& record);
  void tidy();

  std::map<Ino, InodeChange> inodes_;
};

}  // namespace varve::compare
