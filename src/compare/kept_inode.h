// One inode of a snapshot, as an answer has it; and what is in its blocks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compare/question.h"
#include "format/item.h"

namespace varve::compare {

struct KeptInode {
  format::Attributes attributes;
  std::string target;  // of a symlink
  std::vector<format::Xattr> xattrs;
};
void append(const KeptInode& inode, format::Bytes& out);
Result<KeptInode> decode_inode(std::span<const std::byte> bytes);  // Errc::corrupt

Result<KeptInode> ask_inode(const Ask& ask, Serial snapshot, Ino ino);
// Some bytes from there on, at most kMostDataBytes; none at the end of the file.
inline constexpr std::size_t kMostDataBytes = 3 * kBlockSize;
Result<format::Bytes> ask_data(const Ask& ask, Serial snapshot, Ino ino, std::uint64_t offset);

}  // namespace varve::compare
