// Small things that several groups of operations share.
#pragma once

#include <sys/stat.h>

#include "format/chunk.h"
#include "fs/filesystem.h"
#include "operation/attempt.h"

namespace varve::fs {

// Operations are made of these.
using operation::Attempt;
using operation::FileBlock;
using operation::InodeLocks;
using operation::kFewPlaces;
using operation::kFewRecordBytes;
using operation::Retry;
using operation::Wait;

inline bool is_directory(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex) { return S_ISDIR(inode.attributes.mode); }
inline bool is_regular(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex) { return S_ISREG(inode.attributes.mode); }
inline std::uint8_t entry_type(std::uint32_t mode) { return static_cast<std::uint8_t>((mode & S_IFMT) >> 12); }

Attr attr_of(const changes::Inode& inode, const tree::TreeView& view) REQUIRES_SHARED(inode.mutex);

using format::kCapability;

inline void touch_mtime(changes::Inode& inode, Timestamp now) REQUIRES(inode.mutex) {
  inode.attributes.mtime = inode.attributes.ctime = now;
}

// suid goes when content or owner changes, and sgid where the group may execute or `any_sgid`.
void drop_suid(changes::Inode& inode, bool any_sgid = false) REQUIRES(inode.mutex);

// After the last name is gone: frees it, or keeps it as an orphan while the kernel refers to it.
void release_unlinked(Attempt& attempt, changes::Inode& inode) REQUIRES(inode.mutex);

// --- names ---
inline constexpr std::uint32_t kMaxLinks = 0xFFFF'0000;
Status check_new_name(std::string_view name);
inline std::size_t entry_record_bytes(std::string_view name) { return 640 + 2 * name.size(); }
inline Result<std::optional<changes::FoundEntry>> find_name(Attempt& a, const changes::Inode& directory, std::string_view name)
    REQUIRES_SHARED(directory.mutex) {
  return changes::find_entry(directory, a.view(), a.source(), a.store().super().hash_key, name);
}

// What has data: else Errc::is_directory, Errc::invalid, or Errc::stale where it has gone.
Status must_be_file(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex);

// --- immutable and append-only inodes (chattr); Errc::not_permitted ---
// Content that is there, owner, names, extended attributes.
Status may_alter(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex);
// By content behind the end, by names in a directory.
Status may_extend(const changes::Inode& inode) REQUIRES_SHARED(inode.mutex);
Status may_remove_name(const changes::Inode& directory, const changes::Inode& inode) REQUIRES_SHARED(directory.mutex, inode.mutex);

// --- access times ---
// Whether one has to change for a read at `now`.
bool atime_is_due(const Options& options, const changes::Inode& inode, Timestamp now) REQUIRES_SHARED(inode.mutex);
// Changes it, if that needs no waiting: a read never fails or waits for its time.
void touch_atime(operation::Operations& operations, Operation& operation, Ino ino);

// --- extended attributes ---
// A directory made below one with a default ACL has it twice, and all that is one operation's goes into one chunk.
inline constexpr std::size_t kMaxDefaultAcl = (format::kMaxChunkRecordBytes - 2048) / 2;
const format::Xattr* find_xattr(const std::vector<format::Xattr>& xattrs, std::string_view name);  // null: there is none
// Names and values of all of them but one.
std::size_t xattr_bytes(const std::vector<format::Xattr>& xattrs, const format::Xattr* without);
// Bytes of all extended attributes if a security.capability, which does not outlive a change of the content, is among
// them; otherwise none.
Result<std::size_t> set_with_capability(Attempt& attempt, const changes::Inode& inode) REQUIRES_SHARED(inode.mutex);

// Of a change of content by somebody without CAP_FSETID: looked at before anything changes, taken away with the change.
class Privileges {
 public:
  static Result<Privileges> look(Attempt& attempt, const changes::Inode& inode, const WriteFlags& flags) REQUIRES_SHARED(inode.mutex);
  void drop(Attempt& attempt, changes::Inode& inode) const REQUIRES(inode.mutex);

 private:
  explicit Privileges(const WriteFlags& flags) : flags_(flags) {}
  WriteFlags flags_;
  std::size_t set_with_capability_ = 0;
};

// The size of a file becomes `size`, and what is allocated behind it goes, unless it grows. `demand`: of all that its caller changes
// with it. May answer would_block.
Status resize(Attempt& attempt, changes::Inode& inode, std::uint64_t size, bool is_cut, space::Demand demand)
    REQUIRES(inode.mutex);

}  // namespace varve::fs
