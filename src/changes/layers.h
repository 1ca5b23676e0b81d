// Reading through the layers: active delta, delta being merged, trees. The caller is inside the gate, which keeps `view` in place, and
// what comes from the deltas stays as long as the inode's lock. Everything that reads a tree may fail with Errc::would_block.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "changes/inode.h"
#include "tree/tree_view.h"

namespace varve::changes {

// What to look at, newest first.
struct Layers {
  std::array<const InodeDelta*, 2> deltas{};
  unsigned count = 0;
  bool tree = true;  // the trees may know something
};
Layers layers_of(const Inode& inode, const tree::TreeView& view) REQUIRES_SHARED(inode.mutex);

Status load_attributes(Inode& inode, const tree::TreeView& view, tree::NodeSource& source) REQUIRES(inode.mutex);
// Blocks that the file owns, as well as is known; never too few.
std::uint64_t block_count(const Inode& inode, const tree::TreeView& view) REQUIRES_SHARED(inode.mutex);

// --- file blocks ---
struct MappedBlock {
  enum class Kind : std::uint8_t { unknown, hole, unwritten, pending, device, tail };
  Kind kind = Kind::unknown;
  std::uint8_t estimate = 0;
  BlockAddr address;  // device
  std::uint32_t crc = 0;
  std::uint32_t clock = 0;
  PendingBlock* pending = nullptr;
  TailBytes tail;

  bool has_data() const { return is_block() || kind == Kind::tail; }
  bool is_block() const { return kind == Kind::pending || kind == Kind::device; }  // that the file owns, unlike a tail
};
// Bytes of a tail from `from` on.
void copy_tail(const format::Bytes& tail, std::size_t from, std::span<std::byte> out);
// decode_extent() for what will be used: its address says which segment is looked at or changed, so one that is outside them
// is corrupt.
Result<format::Extent> decode_placed(std::span<const std::byte> value, const segments::SegmentGeometry& segments);
// Fills out[i] for file block first + i. `leaves_ahead`: so many are fetched in one go, if the trees are asked at all.
Status resolve_blocks(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t first,
                      std::span<MappedBlock> out, unsigned leaves_ahead = 0) REQUIRES_SHARED(inode.mutex);
// Same without the trees: what they would have to tell stays unknown.
void resolve_in_deltas(const Layers& layers, std::uint64_t first, std::span<MappedBlock> out);
// The other half: fills what is unknown and the trees know; what they do not have stays unknown.
Status resolve_in_tree(Ino ino, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t first, std::span<MappedBlock> out,
                       unsigned leaves_ahead = 0);
// Likewise, with a cursor that stands on the last extent which begins at or before `first`, or on the one after it; leaves
// it so for what follows `out`.
Status resolve_at(tree::Cursor& cursor, const segments::SegmentGeometry& segments, Ino ino, std::uint64_t first,
                  std::span<MappedBlock> out);
// Exact number of blocks owned in [from, to), unwritten ones included.
Result<std::uint64_t> count_owned(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t from,
                                  std::uint64_t to) REQUIRES_SHARED(inode.mutex);
// The same in several attempts, as long as the file's content stays the same: counts on from `so_far.at`. would_block with
// nothing wanted: enough for one attempt.
struct OwnedSoFar {
  std::uint64_t at = 0;     // everything before it has been counted
  std::uint64_t owned = 0;
};
Status count_owned_on(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, OwnedSoFar& so_far, std::uint64_t to,
                      std::uint64_t most_steps) REQUIRES_SHARED(inode.mutex);

// --- directories ---
struct FoundEntry {
  Ino ino;
  std::uint8_t type = 0;
  std::uint64_t cookie = 0;  // stays with the name when a rename gives it to another inode

  bool operator==(const FoundEntry&) const = default;
};
using HashKey = std::array<std::uint64_t, 2>;
Result<std::optional<FoundEntry>> find_entry(const Inode& directory, const tree::TreeView& view, tree::NodeSource& source,
                                             const HashKey& key, std::string_view name) REQUIRES_SHARED(directory.mutex);
// Entries with a cookie above `after`, in cookie order, until visit returns false.
Status scan_entries(const Inode& directory, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t after,
                    const std::function<Result<bool>(std::uint64_t cookie, Ino ino, std::uint8_t type,
                                                     std::string_view name)>& visit) REQUIRES_SHARED(directory.mutex);

// --- extended attributes, symlinks ---
Result<std::vector<format::Xattr>> load_xattrs(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source)
    REQUIRES_SHARED(inode.mutex);
Result<std::string> load_symlink(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source) REQUIRES_SHARED(inode.mutex);
// The blob stored in pieces under (ino, kind, 0…).
Result<format::Bytes> load_blob(const tree::TreeView& view, tree::NodeSource& source, Ino ino, format::ItemKind kind);

}  // namespace varve::changes
