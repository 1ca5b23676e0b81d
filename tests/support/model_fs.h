// An exact reference of what a user of fs::Filesystem can see, kept in memory: inodes, names, contents, attributes,
// extended attributes, and inodes that live on without a name because somebody holds them.
//
// Works on inodes as the filesystem does; errors are those POSIX and Linux name for the call. Copying a ModelFs is
// cheap (inodes are shared until one side changes them), so that crash tests can keep the state after every operation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "support/model_content.h"

namespace varve::test {

using ModelId = std::uint64_t;  // the model's own number of an inode, never reused
inline constexpr ModelId kModelRoot = 1;

// The value of an extended attribute: `length` bytes of a pattern.
struct ModelValue {
  std::uint64_t seed = 0;
  std::uint64_t length = 0;
  bool operator==(const ModelValue&) const = default;
};

struct ModelInode {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 0;
  std::uint32_t rdev = 0;
  std::uint64_t size = 0;  // files; length of the target for symlinks; not modelled for directories
  Timestamp atime, mtime, ctime, btime;
  Ino ino;                       // as the filesystem named it; none while unknown
  std::uint32_t generation = 0;  // likewise

  ModelId parent = 0;  // directories
  std::map<std::string, ModelId, std::less<>> entries;
  ModelContent content;
  std::string symlink;
  std::map<std::string, ModelValue, std::less<>> xattrs;

  mutable std::optional<std::uint64_t> content_hash;  // cache; dropped by every change

  bool is_directory() const;
  bool is_file() const;
  bool is_symlink() const;
};

enum class ModelFallocate : std::uint8_t { allocate, allocate_keep_size, punch_hole, zero_range, zero_range_keep_size };

struct ModelNewNode {
  std::uint32_t mode = 0;
  std::uint32_t rdev = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string_view symlink;
};

struct ModelAttrChange {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> atime, mtime;
};

class ModelFs {
 public:
  ModelFs();  // an empty root directory; adopt() tells what the filesystem made of it

  // --- looking ---
  const ModelInode& inode(ModelId id) const { return *inodes_.at(id); }
  bool has(ModelId id) const { return inodes_.contains(id); }
  std::size_t inode_count() const { return inodes_.size(); }
  Result<ModelId> lookup(ModelId directory, std::string_view name) const;
  Result<ModelId> resolve(std::string_view path) const;  // absolute, no symlinks followed
  bool is_ancestor(ModelId above, ModelId below) const;  // or the same
  std::uint64_t written_bytes() const;

  // --- changing; each takes its time as an argument and changes nothing when it fails ---
  Result<ModelId> make(ModelId parent, std::string_view name, const ModelNewNode& node, Timestamp now);
  Result<ModelId> make_unnamed(ModelId parent, const ModelNewNode& node, Timestamp now);  // hold() it or it is gone
  Status link(ModelId id, ModelId parent, std::string_view name, Timestamp now);
  Status unlink(ModelId parent, std::string_view name, Timestamp now);
  Status rmdir(ModelId parent, std::string_view name, Timestamp now);
  Status rename(ModelId from_parent, std::string_view from, ModelId to_parent, std::string_view to, unsigned flags,
                Timestamp now);
  Status setattr(ModelId id, const ModelAttrChange& change, Timestamp now);
  Status write(ModelId id, std::uint64_t offset, std::uint64_t length, std::uint64_t seed, Timestamp now);
  Status fallocate(ModelId id, ModelFallocate mode, std::uint64_t offset, std::uint64_t length, Timestamp now);
  Status setxattr(ModelId id, std::string_view name, ModelValue value, unsigned flags, Timestamp now);
  Status removexattr(ModelId id, std::string_view name, Timestamp now);

  // --- references: an unlinked inode lives while a slot holds it ---
  void hold(const std::string& slot, ModelId id);  // replaces what the slot held
  Status release(const std::string& slot);         // Errc::not_found when it holds nothing
  Result<ModelId> held(std::string_view slot) const;
  const std::map<std::string, ModelId, std::less<>>& slots() const { return slots_; }
  void drop_all_references();  // remount or crash

  // --- snapshots: states that stay, without what only references held ---
  Status keep(const std::string& name);
  void keep_state(const std::string& name, const ModelFs& state);  // of that moment
  Status drop(const std::string& name);
  Status relabel(const std::string& name, const std::string& new_name);
  const std::map<std::string, std::shared_ptr<const ModelFs>>& kept() const { return kept_; }

  // What the filesystem chose itself.
  void bind(ModelId id, Ino ino, std::uint32_t generation);
  void adopt_times(ModelId id, Timestamp atime, Timestamp mtime, Timestamp ctime, Timestamp btime);
  ModelInode& edit(ModelId id);  // for tests of the comparer and for adopting a state

 private:
  Result<ModelId> new_entry_place(ModelId parent, std::string_view name) const;
  Result<ModelId> existing_entry(ModelId parent, std::string_view name) const;
  ModelId add_inode(ModelId parent, const ModelNewNode& node, Timestamp now);
  void enter(ModelId parent, std::string_view name, ModelId id, Timestamp now);
  void leave(ModelId parent, std::string_view name, Timestamp now);
  void drop_link(ModelId id, Timestamp now);
  void touch(ModelId directory, Timestamp now);
  void reap(ModelId id);
  bool is_held(ModelId id) const;
  Status check_rename(ModelId source, ModelId from_parent, std::optional<ModelId> target, ModelId to_parent,
                      unsigned flags) const;
  void exchange(ModelId from_parent, std::string_view from, ModelId to_parent, std::string_view to, Timestamp now);

  std::map<ModelId, std::shared_ptr<ModelInode>> inodes_;
  std::map<std::string, ModelId, std::less<>> slots_;
  ModelId next_id_ = kModelRoot + 1;
  std::map<std::string, std::shared_ptr<const ModelFs>> kept_;
};

}  // namespace varve::test
