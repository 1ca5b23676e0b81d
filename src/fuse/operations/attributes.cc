#include "fuse/operations/attributes.h"

#include <linux/fs.h>
#include <linux/stat.h>

namespace varve::fuse {

namespace {

constexpr std::uint64_t kSectorsPerBlock = kBlockSize / 512;
constexpr std::uint32_t kPermissions = 07777;

Timestamp to_time(std::uint64_t seconds, std::uint32_t nanoseconds) {
  return {static_cast<std::int64_t>(seconds), nanoseconds};
}

wire::StatxTime to_statx_time(const Timestamp& time) { return {time.seconds, time.nanoseconds, 0}; }

// The kernel's 32-bit device number: 12 bits of major between the two parts of the minor.
std::uint32_t major_of(std::uint32_t rdev) { return (rdev >> 8) & 0xFFF; }
std::uint32_t minor_of(std::uint32_t rdev) { return (rdev & 0xFF) | ((rdev >> 12) & 0xFFF00); }

std::uint64_t statx_attributes(std::uint32_t flags) {
  std::uint64_t attributes = 0;
  if (flags & FS_IMMUTABLE_FL) attributes |= STATX_ATTR_IMMUTABLE;
  if (flags & FS_APPEND_FL) attributes |= STATX_ATTR_APPEND;
  if (flags & FS_NODUMP_FL) attributes |= STATX_ATTR_NODUMP;
  return attributes;
}

}  // namespace

fuse_attr to_fuse_attr(const fs::Attr& attr) {
  fuse_attr out{};
  out.ino = attr.ino.v;
  out.size = attr.size;
  out.blocks = attr.blocks * kSectorsPerBlock;
  out.atime = static_cast<std::uint64_t>(attr.atime.seconds);
  out.mtime = static_cast<std::uint64_t>(attr.mtime.seconds);
  out.ctime = static_cast<std::uint64_t>(attr.ctime.seconds);
  out.atimensec = attr.atime.nanoseconds;
  out.mtimensec = attr.mtime.nanoseconds;
  out.ctimensec = attr.ctime.nanoseconds;
  out.mode = attr.mode;
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  out.rdev = attr.rdev;
  out.blksize = kBlockSize;
  return out;
}

fuse_attr_out to_attr_out(const fs::Attr& attr, std::uint64_t valid_seconds) {
  fuse_attr_out out{};
  out.attr_valid = valid_seconds;
  out.attr = to_fuse_attr(attr);
  return out;
}

fuse_entry_out to_entry(const fs::Attr& attr) {
  fuse_entry_out out{};
  out.nodeid = attr.ino.v;
  out.generation = attr.generation;
  out.entry_valid = kForeverSeconds;
  out.attr_valid = kForeverSeconds;
  out.attr = to_fuse_attr(attr);
  return out;
}

fuse_entry_out to_entry(fs::Attr attr, Ino number) {
  attr.ino = number;
  return to_entry(attr);
}

fuse_entry_out no_entry() {
  fuse_entry_out out{};
  out.entry_valid = kForeverSeconds;
  return out;
}

wire::StatxOut to_statx(const fs::Attr& attr, std::uint64_t valid_seconds) {
  wire::StatxOut out{};
  out.attr_valid = valid_seconds;
  out.mask = STATX_BASIC_STATS | STATX_BTIME;
  out.blksize = kBlockSize;
  out.attributes = statx_attributes(attr.flags);
  out.attributes_mask = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP;
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  out.mode = static_cast<std::uint16_t>(attr.mode);
  out.ino = attr.ino.v;
  out.size = attr.size;
  out.blocks = attr.blocks * kSectorsPerBlock;
  out.atime = to_statx_time(attr.atime);
  out.btime = to_statx_time(attr.btime);
  out.ctime = to_statx_time(attr.ctime);
  out.mtime = to_statx_time(attr.mtime);
  out.rdev_major = major_of(attr.rdev);
  out.rdev_minor = minor_of(attr.rdev);
  return out;
}

std::string to_name_list(const std::vector<std::string>& names, bool may_see_all) {
  std::string list;
  for (const std::string& name : names)
    if (may_see_all || !name.starts_with("trusted.")) list.append(name).push_back('\0');
  return list;
}

fs::AttrChange to_change(const fuse_setattr_in& in, Timestamp now) {
  fs::AttrChange change;
  if (in.valid & FATTR_MODE) change.mode = in.mode & kPermissions;
  if (in.valid & FATTR_UID) change.uid = in.uid;
  if (in.valid & FATTR_GID) change.gid = in.gid;
  if (in.valid & FATTR_SIZE) change.size = in.size;
  if (in.valid & FATTR_ATIME) change.atime = to_time(in.atime, in.atimensec);
  if (in.valid & FATTR_MTIME) change.mtime = to_time(in.mtime, in.mtimensec);
  if (in.valid & FATTR_CTIME) change.ctime = to_time(in.ctime, in.ctimensec);
  if (in.valid & FATTR_ATIME_NOW) change.atime = now;
  if (in.valid & FATTR_MTIME_NOW) change.mtime = now;
  change.chosen_time = (in.valid & (FATTR_ATIME | FATTR_ATIME_NOW)) == FATTR_ATIME;
  change.of_open_file = (in.valid & FATTR_FH) != 0;  // truncations, too
  // With HANDLE_KILLPRIV_V2 a change of owner always drops them; a truncation when the kernel says so.
  change.drop_privileges = (in.valid & (FATTR_KILL_SUIDGID | FATTR_UID | FATTR_GID)) != 0;
  return change;
}

}  // namespace varve::fuse
