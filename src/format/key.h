// The key of everything in the trees of items: (inode, kind, offset), ordered in this way.
#pragma once

#include <compare>

#include "base/types.h"

namespace varve::format {

enum class ItemKind : std::uint8_t {
  extent = 1,      // offset = first file block
  dirent = 2,      // offset = cookie
  name_hash = 3,   // offset = hash of the name; value = cookies of the entries with that hash
  xattr = 4,       // offset = piece number of the inode's attribute blob
  symlink = 5,     // offset = piece number of the target
  orphan = 6,      // only under kOrphanIno: offset = inode number of an unlinked inode that is still open
  attributes = 7,  // offset = 0; last, so that a merge knows the exact block count when it comes here
  // Of .sfile (format/snapshot.h), in which the first part of the key is no inode:
  snapshot = 8,    // under 0: offset = serial
  dead = 9,        // under the holder's mark: offset = number of the piece
  place = 10,      // under an address that old trees name: offset = serial of the checkpoint that moved the block away from there
  name = 11,       // under the address where such a block stands now: offset = the same serial
};

// Hidden owner of the orphan items; user inodes start at kRootIno = 1.
inline constexpr Ino kOrphanIno{0};

struct Key {
  Ino ino;
  ItemKind kind = ItemKind::extent;
  std::uint64_t offset = 0;

  constexpr auto operator<=>(const Key&) const = default;
};

inline constexpr Key kMinKey{Ino{0}, static_cast<ItemKind>(0), 0};
inline constexpr Key kMaxKey{Ino{~0ULL}, static_cast<ItemKind>(0xFF), ~0ULL};

}  // namespace varve::format
