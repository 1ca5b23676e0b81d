// The kernel's FUSE protocol: <linux/fuse.h>, and what older copies of it lack.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>

namespace varve::fuse {

// Protocol version that replies declare. The kernel takes the lower one of both sides.
inline constexpr std::uint32_t kMinorVersion = 39;

inline constexpr std::uint32_t kOpStatx = 52;            // 7.39
inline constexpr std::uint32_t kOpCopyFileRange64 = 53;  // 7.45
inline constexpr int kNotifyPrune = 9;                   // 7.45
inline constexpr std::uint64_t kAllowIdmap = std::uint64_t{1} << 40;  // of INIT, 7.41 (Linux 6.12)
inline constexpr std::size_t kOpcodes = 64;              // room in tables

// Replies say "valid for ever": this daemon is the only one that changes the filesystem, and the kernel sees all of it.
inline constexpr std::uint64_t kForeverSeconds = 1'000'000'000;

// Where the payload of a WRITE begins: a message received this far before a page boundary has it page-aligned.
inline constexpr std::size_t kWriteHeaderBytes = sizeof(fuse_in_header) + sizeof(fuse_write_in);
static_assert(kWriteHeaderBytes == 80);

namespace wire {

struct StatxIn {
  std::uint32_t getattr_flags;
  std::uint32_t reserved;
  std::uint64_t fh;
  std::uint32_t sx_flags;
  std::uint32_t sx_mask;
};
static_assert(sizeof(StatxIn) == 24);

struct StatxTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
  std::int32_t reserved;
};

struct StatxOut {
  std::uint64_t attr_valid;
  std::uint32_t attr_valid_nsec;
  std::uint32_t flags;
  std::uint64_t spare[2];
  std::uint32_t mask;  // STATX_*
  std::uint32_t blksize;
  std::uint64_t attributes;  // STATX_ATTR_*
  std::uint32_t nlink;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint16_t mode;
  std::uint16_t spare_mode;
  std::uint64_t ino;
  std::uint64_t size;
  std::uint64_t blocks;
  std::uint64_t attributes_mask;
  StatxTime atime;
  StatxTime btime;
  StatxTime ctime;
  StatxTime mtime;
  std::uint32_t rdev_major;
  std::uint32_t rdev_minor;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint64_t spare2[14];
};
static_assert(sizeof(StatxOut) == 32 + 256);

struct CopyFileRangeOut {  // reply to COPY_FILE_RANGE_64
  std::uint64_t bytes_copied;
};

struct NotifyPrune {  // followed by inode numbers
  std::uint32_t count;
  std::uint32_t padding;
  std::uint64_t spare;
};
static_assert(sizeof(NotifyPrune) == 16);

struct EntryAndOpen {  // reply to CREATE and TMPFILE
  fuse_entry_out entry;
  fuse_open_out open;
};
static_assert(sizeof(EntryAndOpen) == sizeof(fuse_entry_out) + sizeof(fuse_open_out));

}  // namespace wire
}  // namespace varve::fuse
