// Values of the items in the inode file: encode appends to a byte vector, decode checks every bound.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/key.h"
#include "format/layout.h"

namespace varve::format {

using Bytes = std::vector<std::byte>;

// --- attributes -------------------------------------------------------------------------------------------------
// Cookies are below, so that no arithmetic with them overflows. Nobody lives to use that many up.
inline constexpr std::uint64_t kCookieLimit = 1ULL << 62;
struct Attributes {
  std::uint32_t mode = 0;  // type and permissions, as st_mode
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t nlink = 0;
  std::uint64_t size = 0;    // bytes
  std::uint64_t blocks = 0;  // file blocks owned, with unwritten ones; exact in a tree, kept only by merges
  std::uint32_t rdev = 0;
  std::uint32_t generation = 0;   // random at allocation
  std::uint32_t flags = 0;        // FS_*_FL bits that Varve honours
  Ino parent;                     // directories: the directory that holds it; root: itself
  std::uint64_t next_cookie = 3;  // directories: cookie of the next entry; 1 and 2 are "." and ".."
  std::uint64_t entries = 0;      // directories: number of entries
  Timestamp atime, mtime, ctime, btime;

  bool operator==(const Attributes&) const = default;
};
void encode_attributes(const Attributes& attributes, Bytes& out);
Result<Attributes> decode_attributes(std::span<const std::byte> value);

// --- extents ----------------------------------------------------------------------------------------------------
// u8 flags, u48 address, u32 clock, u8 estimate, then one u32 CRC32C per block; the length is the number of CRCs.
// Unwritten (allocated by fallocate, no blocks of its own): flags bit 0, then varint length; reads as zeros.
struct Extent {
  BlockAddr address;             // none when unwritten
  std::uint64_t length = 0;      // blocks; 1…kMaxExtentBlocks when written
  std::uint32_t clock = 0;       // log clock of the write, in units of Superblock::clock_unit blocks
  std::uint8_t estimate = 0;     // coded rewrite interval, 0 = unknown
  bool unwritten = false;
  std::vector<std::uint32_t> crcs;  // one per block, empty when unwritten

  bool operator==(const Extent&) const = default;
};
void encode_extent(const Extent& extent, Bytes& out);
Result<Extent> decode_extent(std::span<const std::byte> value);
Result<std::uint64_t> extent_length(std::span<const std::byte> value);  // the same checks, but no vector of CRCs

// --- tails ------------------------------------------------------------------------------------------------------
// The last partial block of a file, which has no block of the device: an item of the same kind under its file block, with flags bit 1,
// then 1…kMaxTail bytes. The file owns no block there, and what follows the bytes reads as zeros. decode_extent() refuses tails.
bool is_tail(std::span<const std::byte> value);
void encode_tail(std::span<const std::byte> bytes, Bytes& out);
Result<std::span<const std::byte>> decode_tail(std::span<const std::byte> value);  // points into `value`

// Blocks that the file owns by an item of this kind: the length of an extent, none of a tail. The same checks as decoding.
Result<std::uint64_t> owned_blocks(std::span<const std::byte> value);

// --- directories --------------------------------------------------------------------------------------------------
struct Dirent {
  Ino ino;
  std::uint8_t type = 0;  // S_IFMT bits >> 12, as DT_*
  std::string_view name;  // 1…255 bytes, no '/' and no NUL; points into the decoded value
};
void encode_dirent(const Dirent& entry, Bytes& out);
Result<Dirent> decode_dirent(std::span<const std::byte> value);

// Value of a name_hash item: at least one cookie, ascending (encode sorts).
void encode_cookies(std::span<const std::uint64_t> cookies, Bytes& out);
Result<std::vector<std::uint64_t>> decode_cookies(std::span<const std::byte> value);

// SipHash-2-4 (Aumasson, Bernstein 2012) of the name with the filesystem's key: users cannot aim for collisions.
std::uint64_t name_hash(std::string_view name, const std::array<std::uint64_t, 2>& key);

// --- blobs: extended attributes and symlink targets, in pieces of at most kMaxItemValue bytes ---------------------------
// The attribute with a program's rights. The kernel drops it when the content or the owner of the file changes.
inline constexpr std::string_view kCapability = "security.capability";

struct Xattr {
  std::string name;
  Bytes value;

  bool operator==(const Xattr&) const = default;
};
void encode_xattrs(std::span<const Xattr> xattrs, Bytes& out);  // the whole set of an inode, sorted by name
Result<std::vector<Xattr>> decode_xattrs(std::span<const std::byte> blob);

}  // namespace varve::format
