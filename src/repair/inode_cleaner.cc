#include "repair/inode_cleaner.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>

#include "base/counted.h"

namespace varve::repair {

using format::Extent;
using format::ItemKind;

namespace {

constexpr std::uint64_t kMostCookie = format::kCookieLimit / 2;  // what moves has room behind it
constexpr std::size_t kMostBlobBytes = 64 << 20;   // as the checker

// Blocks [from, to) of a written or unwritten extent.
Extent part_of(const Extent& extent, std::uint64_t from, std::uint64_t to) {
  Extent part = extent;
  part.length = to - from;
  if (extent.unwritten) return part;
  part.address = extent.address + from;
  part.crcs.assign(extent.crcs.begin() + static_cast<std::ptrdiff_t>(from), extent.crcs.begin() + static_cast<std::ptrdiff_t>(to));
  return part;
}

bool is_known_type(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK: return true;
    default: return false;
  }
}

bool is_valid_target(const format::Bytes& target) {
  return !target.empty() && target.size() <= format::kMaxSymlink && std::ranges::find(target, std::byte{0}) == target.end();
}

// What an item holds.
std::string words_of(const format::Key& key) {
  switch (key.kind) {
    case ItemKind::extent: return fmt::format("data from file block {} on", key.offset);
    case ItemKind::dirent: return fmt::format("the entry with cookie {}", key.offset);
    case ItemKind::name_hash: return "a part of the name index";
    case ItemKind::xattr: return fmt::format("piece {} of the extended attributes", key.offset);
    case ItemKind::symlink: return fmt::format("piece {} of where it leads", key.offset);
    case ItemKind::attributes: return "attributes";
    default: return fmt::format("an unknown item (kind {})", static_cast<unsigned>(key.kind));
  }
}

// "name~cookie", cut to what a name may have.
std::string other_name(const std::string& name, std::uint64_t number) {
  const std::string suffix = fmt::format("~{}", number);
  return name.substr(0, format::kMaxName - suffix.size()) + suffix;
}

}  // namespace

void InodeCleaner::add(const format::ItemRef& item, Trust trust) {
  if (item.key.ino == format::kOrphanIno) return add_hidden(item);
  if (item.key.ino != inode_.ino) {
    end();
    begin(item.key.ino);
  }
  consumer_.item(item);
  inode_.is_old |= trust == Trust::old_copy;
  if (item.key.ino.v >= format::kInoLimit) return remove(item, "an inode number that is never handed out");
  switch (item.key.kind) {
    case ItemKind::extent: return format::is_tail(item.value) ? add_tail(item) : add_extent(item, trust);
    case ItemKind::dirent: return add_entry(item);
    case ItemKind::name_hash: has_index_ = true; return;
    case ItemKind::xattr: return add_piece(inode_.xattrs, next_xattr_, item);
    case ItemKind::symlink: return add_piece(inode_.symlink, next_symlink_, item);
    case ItemKind::attributes: return add_attributes(item);
    default: return remove(item, "of a kind that an inode cannot have");
  }
}

void InodeCleaner::finish() {
  end();
  inode_ = {};
}

void InodeCleaner::begin(Ino ino) {
  inode_ = {};
  inode_.ino = ino;
  has_attributes_ = has_index_ = bad_xattrs_ = false;
  extent_end_ = next_xattr_ = next_symlink_ = 0;
}

void InodeCleaner::remove(const format::ItemRef& item, std::string why) {
  actions_.add(ActionCode::item_removed, item.key.ino,
               fmt::format("{}: {}", words_of(item.key), why));
}

void InodeCleaner::add_hidden(const format::ItemRef& item) {
  consumer_.item(item);
  if (item.key.kind == ItemKind::orphan && item.key.offset != 0) consumer_.orphan(Ino{item.key.offset});
  else remove(item, "under the list of orphans");
}

void InodeCleaner::add_extent(const format::ItemRef& item, Trust trust) {
  auto extent = format::decode_extent(item.value);
  std::uint64_t first = item.key.offset;
  if (!extent.ok()) return remove(item, extent.error().message());
  if (first > format::kMaxFileBlocks || extent->length > format::kMaxFileBlocks - first) return remove(item, "too far");
  if (first < extent_end_) {
    const std::uint64_t cut = std::min(extent->length, extent_end_ - first);
    actions_.add(ActionCode::blocks_lost, inode_.ino,
                 fmt::format("file blocks {} to {}: a second claim", first, first + cut - 1));
    if (cut == extent->length) return;
    *extent = part_of(*extent, cut, extent->length);
    first += cut;
  }
  extent_end_ = first + extent->length;
  if (extent->unwritten) return pass_on(first, *extent, trust);
  const BlockAddr end = super_.first_segment + super_.segments * super_.segment_blocks;
  if (extent->address < super_.first_segment || extent->address + extent->length > end)
    return actions_.add(ActionCode::blocks_lost, inode_.ino,
                        fmt::format("file blocks {} to {}: outside the segments", first, extent_end_ - 1));
  const std::uint64_t now = super_.clock / super_.clock_unit;
  if (extent->clock > now) {
    actions_.add(ActionCode::attributes_corrected, inode_.ino,
                 fmt::format("write clock {} of file block {}", extent->clock, first));
    extent->clock = static_cast<std::uint32_t>(now);
  }
  // What lies between lost blocks.
  std::uint64_t from = 0;
  for (auto at = lost_.lower_bound({inode_.ino, first}); at != lost_.end() && *at < std::pair(inode_.ino, extent_end_); ++at) {
    const std::uint64_t lost = at->second - first;
    actions_.add(ActionCode::blocks_lost, inode_.ino,
                 fmt::format("file block {}: block {} belongs to another or holds something else", at->second,
                             extent->address + lost));
    if (lost > from) pass_on(first + from, part_of(*extent, from, lost), trust);
    from = lost + 1;
  }
  if (from == 0) pass_on(first, *extent, trust);
  else if (from < extent->length) pass_on(first + from, part_of(*extent, from, extent->length), trust);
}

void InodeCleaner::lose_tail(std::string_view why) {
  actions_.add(ActionCode::blocks_lost, inode_.ino, fmt::format("file block {}, a tail: {}", inode_.tail_block, why));
  inode_.tail.clear();
}

// Whether it is where the file ends is judged with the attributes.
void InodeCleaner::add_tail(const format::ItemRef& item) {
  const auto bytes = format::decode_tail(item.value);
  const std::uint64_t block = item.key.offset;
  if (!bytes.ok()) return remove(item, bytes.error().message());
  if (!(super_.features.incompat & format::kIncompatTails)) return remove(item, "a tail, of which the superblock does not tell");
  if (block >= format::kMaxFileBlocks) return remove(item, "too far");
  if (!inode_.tail.empty()) lose_tail("another one is behind it");
  inode_.tail_block = block;
  inode_.tail.assign(bytes->begin(), bytes->end());
  if (block < extent_end_) return lose_tail("a second claim");
  extent_end_ = block + 1;
}

// Of a regular file. A block that it might become would have to be written, which a repair does not do with content.
void InodeCleaner::judge_tail() {
  std::uint64_t& size = inode_.attributes.size;
  if (inode_.tail.empty()) return;
  if (inode_.written_end > inode_.tail_block || blocks_for(size) > inode_.tail_block + 1) return lose_tail("the file goes on behind it");
  if (inode_.tail_end() <= size) return;
  actions_.add(ActionCode::size_corrected, inode_.ino,
               fmt::format("{}, it has a tail up to byte {}", counted(size, "byte"), inode_.tail_end()));
  size = inode_.tail_end();
}

void InodeCleaner::pass_on(std::uint64_t first, const Extent& extent, Trust trust) {
  inode_.owned += extent.length;
  if (!extent.unwritten) inode_.written_end = first + extent.length;
  consumer_.extent(inode_.ino, first, extent, trust);
}

void InodeCleaner::add_piece(format::Bytes& blob, std::uint64_t& next, const format::ItemRef& item) {
  if (item.key.offset == next && blob.size() + item.value.size() <= kMostBlobBytes) {
    blob.insert(blob.end(), item.value.begin(), item.value.end());
    ++next;
    return;
  }
  if (item.key.kind == ItemKind::xattr) bad_xattrs_ = true;
  else blob.clear();  // a target with a gap is none
}

void InodeCleaner::add_entry(const format::ItemRef& item) {
  const auto entry = format::decode_dirent(item.value);
  if (!entry.ok())
    return actions_.add(ActionCode::entry_removed, inode_.ino,
                        fmt::format("cookie {}: {}", item.key.offset, entry.error().message()));
  inode_.entries.push_back({item.key.offset, entry->ino, entry->type, std::string(entry->name)});
}

void InodeCleaner::add_attributes(const format::ItemRef& item) {
  auto attributes = format::decode_attributes(item.value);
  if (item.key.offset != 0 || !attributes.ok())
    return remove(item, attributes.ok() ? "second attributes" : attributes.error().message());
  inode_.attributes = std::move(attributes).value();
  has_attributes_ = true;
}

void InodeCleaner::judge_blobs() {
  if (bad_xattrs_ || (!inode_.xattrs.empty() && !format::decode_xattrs(inode_.xattrs).ok())) {
    actions_.add(ActionCode::xattrs_removed, inode_.ino);
    inode_.xattrs.clear();
  }
  if (!is_valid_target(inode_.symlink)) inode_.symlink.clear();
}

// False: there is nothing to make them up for.
bool InodeCleaner::make_up_attributes() {
  format::Attributes& a = inode_.attributes;
  a = {};
  if (inode_.ino == kRootIno) a.mode = S_IFDIR | 0755;
  else if (!inode_.entries.empty() || has_index_) a.mode = S_IFDIR | 0700;
  else if (!inode_.symlink.empty()) a.mode = S_IFLNK | 0777;
  else if (inode_.owned > 0 || !inode_.tail.empty()) a.mode = S_IFREG | 0600;
  else return false;
  a.nlink = S_ISDIR(a.mode) ? 2 : 1;
  a.size = S_ISREG(a.mode) ? inode_.written_end * kBlockSize : inode_.symlink.size();
  if (S_ISREG(a.mode) && !inode_.tail.empty()) a.size = std::max(a.size, inode_.tail_end());
  a.generation = static_cast<std::uint32_t>(inode_.ino.v ^ super_.serial.v) | 1;
  a.atime = a.mtime = a.ctime = a.btime = super_.made;
  if (S_ISDIR(a.mode)) a.parent = inode_.ino == kRootIno ? kRootIno : Ino{};
  actions_.add(ActionCode::attributes_made_up, inode_.ino, fmt::format("mode {:o}", a.mode));
  return true;
}

// False: the inode cannot stay.
bool InodeCleaner::judge_type() {
  if (!has_attributes_ || !is_known_type(inode_.attributes.mode)) return make_up_attributes();
  if (inode_.ino == kRootIno && !S_ISDIR(inode_.attributes.mode)) return make_up_attributes();
  return !S_ISLNK(inode_.attributes.mode) || !inode_.symlink.empty();
}

void InodeCleaner::judge_entries() {
  auto& entries = inode_.entries;
  if (inode_.type() != DT_DIR) {
    for (const CleanEntry& entry : entries)
      actions_.add_entry(ActionCode::entry_removed, inode_.ino, entry.name, "in what is no directory");
    entries.clear();
    return;
  }
  std::unordered_map<std::string, Ino> names;
  std::uint64_t& next_cookie = inode_.attributes.next_cookie;
  if (next_cookie >= kMostCookie) next_cookie = 3;
  std::vector<CleanEntry> kept, moved;
  for (CleanEntry& entry : entries) {
    const auto [at, fresh] = names.emplace(entry.name, entry.ino);
    if (!fresh && at->second == entry.ino) {
      actions_.add_entry(ActionCode::entry_removed, inode_.ino, entry.name, "there twice");
      continue;
    }
    if (!fresh) {
      const std::string old = entry.name;
      for (std::uint64_t n = entry.cookie; !names.emplace(entry.name = other_name(old, n), entry.ino).second; ++n) {}
      actions_.add(ActionCode::entry_renamed, inode_.ino, fmt::format("\"{}\" is \"{}\" now", old, entry.name));
    }
    const bool placed = entry.cookie >= 3 && entry.cookie < kMostCookie;
    if (placed) next_cookie = std::max(next_cookie, entry.cookie + 1);
    (placed ? kept : moved).push_back(std::move(entry));
  }
  for (CleanEntry& entry : moved) {
    actions_.add(ActionCode::entry_moved, inode_.ino, fmt::format("\"{}\": cookie {}", entry.name, entry.cookie));
    entry.cookie = next_cookie++;
    kept.push_back(std::move(entry));
  }
  entries = std::move(kept);
}

void InodeCleaner::judge_attributes() {
  format::Attributes& a = inode_.attributes;
  const format::Attributes before = a;
  if (!S_ISDIR(a.mode)) {
    a.entries = 0;
    a.next_cookie = 3;
  }
  if (!S_ISCHR(a.mode) && !S_ISBLK(a.mode)) a.rdev = 0;
  if (S_ISLNK(a.mode)) a.size = inode_.symlink.size();
  else if (!inode_.symlink.empty()) {
    actions_.add(ActionCode::item_removed, inode_.ino, "the target of a symlink");
    inode_.symlink.clear();
  }
  if (a != before) actions_.add(ActionCode::attributes_corrected, inode_.ino);
  if (!S_ISREG(a.mode)) {
    if (!inode_.tail.empty()) actions_.add(ActionCode::item_removed, inode_.ino, "a tail in what is no regular file");
    inode_.tail.clear();
    return;
  }
  judge_tail();
  if (inode_.written_end <= blocks_for(a.size)) return;
  actions_.add(ActionCode::size_corrected, inode_.ino,
               fmt::format("{}, it owns {}", counted(a.size, "byte"), counted(inode_.written_end, "block")));
  a.size = inode_.written_end * kBlockSize;
}

void InodeCleaner::end() {
  if (!inode_.ino) return;
  judge_blobs();
  inode_.exists = inode_.ino.v < format::kInoLimit && judge_type();
  if (inode_.exists) {
    judge_entries();
    judge_attributes();
  } else {
    actions_.add(ActionCode::inode_removed, inode_.ino);
  }
  consumer_.inode(std::move(inode_));
  inode_ = {};
}

}  // namespace varve::repair
