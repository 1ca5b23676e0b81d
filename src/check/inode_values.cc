#include "check/inode_values.h"

#include <dirent.h>

#include <algorithm>

namespace varve::check {

namespace {

constexpr std::size_t kMostBlobBytes = 64 << 20;  // against crafted images; all attributes of an inode are far less

}  // namespace

void Pieces::clear() {
  bytes_.clear();
  next_ = 0;
  broken_ = false;
}

void Pieces::add(std::uint64_t number, std::span<const std::byte> value) {
  if (number != next_++ || bytes_.size() + value.size() > kMostBlobBytes) broken_ = true;
  if (!broken_) bytes_.insert(bytes_.end(), value.begin(), value.end());
}

std::uint8_t type_of(const format::Attributes& attributes) { return static_cast<std::uint8_t>(attributes.mode >> 12 & 0xF); }

void check_xattrs(Context& context, Ino ino, const Pieces& pieces) {
  if (pieces.empty()) return;
  if (pieces.broken()) return context.add(Code::pieces_missing, {{}, ino}, "of extended attributes");
  const auto xattrs = format::decode_xattrs(pieces.bytes());
  if (!xattrs.ok()) context.add(Code::value_damaged, {{}, ino}, xattrs.error().message());
}

void check_symlink(Context& context, Ino ino, const format::Attributes& attributes, const Pieces& pieces) {
  if (type_of(attributes) != DT_LNK) {
    if (!pieces.empty()) context.add(Code::item_misplaced, {{}, ino}, "the target of a symlink");
    return;
  }
  if (pieces.broken()) return context.add(Code::pieces_missing, {{}, ino}, "of a symlink");
  const format::Bytes& target = pieces.bytes();
  if (target.empty() || target.size() > format::kMaxSymlink || std::ranges::find(target, std::byte{0}) != target.end())
    return context.add(Code::symlink_wrong, {{}, ino}, fmt::format("target of {} bytes", target.size()));
  if (attributes.size != target.size())
    context.add(Code::symlink_wrong, {{}, ino}, fmt::format("size {}, target of {} bytes", attributes.size, target.size()));
}

void check_attributes(Context& context, Ino ino, const format::Attributes& attributes) {
  const bool directory = type_of(attributes) == DT_DIR;
  const bool device = type_of(attributes) == DT_CHR || type_of(attributes) == DT_BLK;
  if (directory && !attributes.parent) context.add(Code::attributes_wrong, {{}, ino}, "a directory without a parent");
  if (!directory && (attributes.entries != 0 || attributes.next_cookie != 3))
    context.add(Code::attributes_wrong, {{}, ino}, "entries counted in what is no directory");
  if (!device && attributes.rdev != 0)
    context.add(Code::attributes_wrong, {{}, ino}, "a device number in what is no device");
}

}  // namespace varve::check
