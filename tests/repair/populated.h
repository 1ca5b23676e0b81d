// Images with a past for damage by chance: several checkpoints, things overwritten and removed, perhaps a log to replay.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/mem_device.h"
#include "repair/repair.h"
#include "support/fs_fixture.h"

namespace varve::repair::test {

// Of at least 9 small files, which the steps name.
std::unique_ptr<io::MemDevice> populated_image(bool unclean, unsigned files = 120);

// Files in directories, overwritten and removed between snapshots; some of it has been moved since. Three states: those of "one" and "two",
// and the one in use.
std::unique_ptr<io::MemDevice> populated_with_snapshots(bool unclean);

// What a mount shows, by inode.
struct SeenFile {
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::vector<std::vector<std::byte>> blocks;  // empty: reading it is an error

  bool operator==(const SeenFile& other) const;
};
struct Seen {
  std::map<Ino, SeenFile> inodes;
  std::map<std::string, Ino> paths;
  std::string error;
};
// `snapshot`: shows that instead of what is in use, read-only.
Seen look_at(io::BlockDevice& device, const std::string& snapshot = {}, bool read_only = false);
std::vector<std::string> snapshot_names(io::BlockDevice& device);

// Every block that holds a superblock, a node of any checkpoint or a chunk's header.
std::vector<BlockAddr> metadata_blocks(const io::MemDevice& device);

// Nothing where both hold the same.
std::optional<BlockAddr> first_difference(const io::MemDevice& one, const io::MemDevice& other);

// The first block of a chunk's header. The last chunk of a log that is damaged cannot be told from one that a crash has
// torn: what was in it is gone without a word.
bool is_chunk(const io::MemDevice& device, BlockAddr block);

// Inodes of which a repair has said that something is not as it was.
class Excuses {
 public:
  explicit Excuses(const ActionLog& actions);
  bool cover(Ino ino) const;

 private:
  std::vector<std::pair<Ino, Ino>> ranges_;
  bool all_ = false;  // a part of the log is lost: whatever was in it
};

// Empty, or what is wrong in `found` that the repair does not admit.
std::string unexcused(const Seen& expected, const Seen& found, const ActionLog& actions);

}  // namespace varve::repair::test
