// Everything a user can see of a filesystem at one moment, in a canonical form: two snapshots are equal exactly when no
// program could tell the states apart. Taken from a model or from a mounted filesystem, compared, hashed, printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "support/fs_fixture.h"
#include "support/model_fs.h"

namespace varve::test {

struct SnapshotEntry {
  std::string path;  // "/", "/a/b", or "%slot" for an inode that is only held; "@name:/a" in a snapshot that the filesystem keeps
  Ino ino;           // none: unknown to the model
  std::uint32_t generation = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 0;
  std::uint32_t rdev = 0;
  std::uint64_t size = 0;       // 0 for directories, whose size is the filesystem's business
  std::string first_path;       // of this inode in the walk: shows which names are links to one inode
  Timestamp atime, mtime, ctime, btime;
  std::uint64_t content = 0;  // hash, see hash_of_block; in the first entry of an inode
  std::string symlink;
  std::string xattrs;  // "name=length:hash " for each, by name
};

struct Snapshot {
  std::vector<SnapshotEntry> entries;  // in the order of a sorted depth-first walk; then slots by name
  std::string error;                   // why the walk could not be finished
};

struct CompareOptions {
  bool times = true;
  bool identity = true;  // inode numbers and generations, where both sides know them
};

Snapshot snapshot_of(const ModelFs& model, bool with_slots = true);  // with what is kept, too
void add_kept(const std::string& name, Snapshot kept, Snapshot& all);
// `model` tells where to start (its root may stand for a subdirectory) and which nameless inodes to look at. Without
// it: everything that has a name.
Snapshot snapshot_of(FsFixture& fixture, const ModelFs* model = nullptr);

// What the running filesystem shows of one that it keeps.
Snapshot kept_beside(FsFixture& fixture, Serial snapshot);

// Hash of all but the identity: equal for equal states.
std::uint64_t hash_of(const Snapshot& snapshot, bool times = true);

// One line for each difference (at most `limit`), empty when there is none.
std::string difference(const Snapshot& expected, const Snapshot& found, const CompareOptions& options = {},
                       std::size_t limit = 12);
std::size_t count_differences(const Snapshot& expected, const Snapshot& found, const CompareOptions& options = {});

// The attributes of one inode; without its content, target and extended attributes.
SnapshotEntry entry_of(const ModelInode& inode);
SnapshotEntry entry_of(const fs::Attr& attr);
// "size is 5, expected 4; …", empty if equal.
std::string difference(const SnapshotEntry& expected, const SnapshotEntry& found, const CompareOptions& options = {});

std::string to_string(const SnapshotEntry& entry);

}  // namespace varve::test
