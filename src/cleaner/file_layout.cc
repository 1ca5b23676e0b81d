#include "cleaner/file_layout.h"

#include <algorithm>

#include "base/gate.h"
#include "base/mutex.h"
#include "changes/inode.h"
#include "changes/layers.h"
#include "format/item.h"
#include "store/store.h"
#include "tree/item_tree.h"
#include "tree/trees.h"

namespace varve::cleaner {

namespace {

// Without those that a delta has replaced, removed or moved.
void drop_replaced(store::Store& store, Ino ino, std::vector<LiveBlock>& blocks) {
  if (blocks.empty()) return;
  const Gate::Pass pass(store.gate());
  const changes::InodePtr inode = store.inodes().find(ino);
  if (!inode) return;
  ReadLock lock(inode->mutex);
  if (inode->gone()) return blocks.clear();
  const changes::Layers layers = changes::layers_of(*inode, store.trees().view());
  std::erase_if(blocks, [&](const LiveBlock& block) { return !still_there(layers, block); });
}

}  // namespace

Result<FilePart> read_layout(store::Store& store, Ino ino, std::uint64_t from, std::size_t most) {
  using format::ItemKind;
  using format::Key;
  FilePart part;
  part.next = from;
  part.last = true;
  tree::BlockingSource source = store.trees().source();
  tree::Cursor cursor(source, store.trees().own_view().inode_file);
  TRY(cursor.seek_floor(Key{ino, ItemKind::extent, from}));
  for (; cursor.valid(); TRY(cursor.next())) {
    const Key& key = cursor.key();
    if (key < Key{ino, ItemKind::extent, 0}) continue;
    if (key.ino != ino || key.kind != ItemKind::extent) break;
    if (format::is_tail(cursor.value())) continue;
    const format::Extent extent = TRY(changes::decode_placed(cursor.value(), store.trees().own_view().segments));
    const std::uint64_t end = key.offset + extent.length;
    for (std::uint64_t block = std::max(from, key.offset); block < end && !extent.unwritten; ++block) {
      if (part.blocks.size() == most) {
        part.last = false;
        break;
      }
      const std::uint64_t at = block - key.offset;
      part.blocks.push_back({extent.address + at, ino, block, extent.clock, extent.crcs[at], extent.estimate, 0});
      part.next = block + 1;
    }
    if (!part.last) break;
  }
  drop_replaced(store, ino, part.blocks);
  return part;
}

std::uint64_t count_fragments(std::span<const LiveBlock> blocks) {
  std::uint64_t fragments = blocks.empty() ? 0 : 1;
  for (std::size_t i = 1; i < blocks.size(); ++i) fragments += blocks[i].address != blocks[i - 1].address + 1;
  return fragments;
}

}  // namespace varve::cleaner
