// All regular files below some inodes, in directory order: depth first, entries in the order readdir gives them. Reads names
// without touching access times.
#pragma once

#include <deque>
#include <unordered_set>
#include <vector>

#include "cleaner/file_source.h"
#include "jobs/parts.h"

namespace varve::jobs {

// What appears, goes or is renamed during the walk may be met or not; what stays is met. No directory is entered twice, as
// damaged ones may lead to themselves: that takes about forty bytes of memory for each. What cannot be read of a directory, or
// of its inode, is left out and counted; the first one is logged.
class FileWalk final : public cleaner::FileSource {
 public:
  FileWalk(operation::Operations& operations, const std::vector<Ino>& roots);
  Result<std::optional<Ino>> next() override;
  std::uint64_t unreadable_directories() const override { return unreadable_; }

 private:
  struct Entry {
    Ino ino;
    std::uint8_t type = 0;
  };
  struct Level {
    Ino directory;
    std::uint64_t cookie = 0;  // of the last entry that was read
    std::deque<Entry> ahead;
    bool ended = false;
  };
  Status read_entries(Level& level);
  bool leave_out(Ino directory, const Error& why);
  Result<std::uint8_t> type_of(Ino ino);
  std::optional<Ino> enter(const Entry& entry);

  operation::Operations& operations_;
  std::deque<Entry> roots_;
  std::vector<Level> levels_;
  std::unordered_set<Ino> entered_;
  std::uint64_t unreadable_ = 0;
};

}  // namespace varve::jobs
