// Directory entries packed into a reply, in the plain form or with attributes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "fs/filesystem.h"
#include "fuse/operations/attributes.h"
#include "fuse/operations/kept_node.h"
#include "fuse/protocol/listing_position.h"

namespace varve::fuse {

class Listing {
 public:
  // `snapshot`: whose entries they are; none: the newest state's.
  Listing(std::span<std::byte> space, bool plus, std::uint64_t last, Serial snapshot = {})
      : space_(space), plus_(plus), last_(last), snapshot_(snapshot) {}

  // False: no room for it, or behind the end.
  bool add(const fs::DirectoryEntry& entry) {
    if (entry.cookie > last_) return false;
    const std::size_t head = plus_ ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    const std::size_t bytes = FUSE_REC_ALIGN(head + entry.name.size());
    if (bytes > space_.size() - used_) return false;
    std::byte* at = space_.data() + used_;
    used_ += bytes;
    std::memset(at + bytes - sizeof(std::uint64_t), 0, sizeof(std::uint64_t));
    const std::optional<Ino> number = snapshot_ ? KeptNode{snapshot_, entry.ino}.encode() : entry.ino;
    if (plus_) {
      // "." and "..", and what has no number: node 0, which the kernel does not look at.
      const fuse_entry_out out = entry.attr && number ? to_entry(*entry.attr, *number) : fuse_entry_out{};
      std::memcpy(at, &out, sizeof out);
      at += sizeof out;
    }
    fuse_dirent dirent{};
    dirent.ino = number.value_or(entry.ino).v;
    dirent.off = ListingPosition{entry.cookie, last_}.encode();
    dirent.namelen = static_cast<std::uint32_t>(entry.name.size());
    dirent.type = entry.type;
    std::memcpy(at, &dirent, FUSE_NAME_OFFSET);
    std::memcpy(at + FUSE_NAME_OFFSET, entry.name.data(), entry.name.size());
    return true;
  }

  std::span<const std::byte> bytes() const { return space_.first(used_); }
  void clear() { used_ = 0; }

 private:
  std::span<std::byte> space_;
  bool plus_;
  std::uint64_t last_;
  Serial snapshot_;
  std::size_t used_ = 0;
};

}  // namespace varve::fuse
