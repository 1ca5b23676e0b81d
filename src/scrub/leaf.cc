// The part of the walk that reads files' blocks.
#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "format/item.h"
#include "scrub/walk.h"

namespace varve::scrub {

using format::ItemKind;
using format::Key;

void Walk::verify_leaf() {
  std::vector<Block> blocks;
  const Key next = is_map() ? leaf_->bound : collect(blocks);
  read_blocks(blocks);
  std::erase_if(blocks, [](const Block& block) { return block.error.empty(); });
  if (!blocks.empty()) {
    if (!is_current()) return;  // once more, on the new checkpoint
    std::erase_if(blocks, [&](const Block& block) { return is_superseded(block); });
    report_blocks(blocks);
  }
  position_.next = next;
  if (next >= leaf_->bound) leaf_.reset();
}

// The blocks of the leaf's extents from the position on, as many as fit in a step. Returns where to go on.
Key Walk::collect(std::vector<Block>& blocks) {
  const auto items = leaf_->node->items();
  auto item = std::ranges::upper_bound(items, position_.next, {}, &format::ItemRef::key);
  if (item != items.begin()) --item;  // an extent may begin before the position and reach beyond it
  for (; item != items.end(); ++item) {
    const Key& key = item->key;
    if (key.kind != ItemKind::extent) continue;
    const auto extent = format::decode_extent(item->value);
    if (!extent.ok() || extent->unwritten) continue;  // a leaf with a right checksum: what is in it is fsck's to judge
    const Key end{key.ino, ItemKind::extent, key.offset + extent->length};
    if (end <= position_.next) continue;
    if (!blocks.empty() && step_.blocks + blocks.size() + extent->length > kStepBlocks) return key;
    const bool is_begun = key < position_.next;
    for (std::uint64_t i = is_begun ? position_.next.offset - key.offset : 0; i < extent->length; ++i)
      blocks.push_back({extent->address + i, extent->crcs[i], key.ino, key.offset + i, {}});
  }
  return leaf_->bound;
}

void Walk::read_blocks(std::vector<Block>& blocks) {
  std::ranges::sort(blocks, {}, &Block::address);
  for (std::size_t begin = 0; begin < blocks.size();) {
    std::size_t end = begin + 1;
    while (end < blocks.size() && blocks[end].address == blocks[end - 1].address + 1) ++end;
    read_run(std::span(blocks).subspan(begin, end - begin));
    begin = end;
  }
}

void Walk::read_run(std::span<Block> run) {
  AlignedBuffer memory(run.size() * kBlockSize);
  const Status whole = store_.device().read(run[0].address.v << kBlockShift, memory.span());
  step_.blocks += run.size();
  for (std::size_t i = 0; i < run.size(); ++i) {
    const auto bytes = memory.span().subspan(i * kBlockSize, kBlockSize);
    const Status read =
        whole.ok() || run.size() == 1 ? whole : store_.device().read(run[i].address.v << kBlockShift, bytes);
    if (!read.ok()) {
      ++step_.unreadable;
      run[i].error = read.error().message();
    } else if (crc32c(bytes) != run[i].crc) {
      run[i].error = "the data does not match its checksum";
    }
  }
}

// The checkpoint still needs the block, but the file has something newer there.
bool Walk::is_superseded(const Block& block) {
  const log::Gate::Pass pass(store_.gate());
  const store::InodePtr inode = store_.inodes().find(block.ino);
  if (!inode) return false;
  ReadLock lock(inode->mutex);
  if (inode->gone()) return true;
  store::MappedBlock mapped;
  store::resolve_in_deltas(store::layers_of(*inode, store_.trees().view()), block.file_block, {&mapped, 1});
  return mapped.kind != store::MappedBlock::Kind::unknown &&
         !(mapped.kind == store::MappedBlock::Kind::device && mapped.address == block.address);
}

// Neighbours with the same fault are one finding.
void Walk::report_blocks(std::vector<Block>& bad) {
  for (std::size_t begin = 0; begin < bad.size();) {
    const auto continues = [&](std::size_t i) {
      const Block &a = bad[i - 1], &b = bad[i];
      return b.address == a.address + 1 && b.ino == a.ino && b.file_block == a.file_block + 1;
    };
    std::size_t end = begin + 1;
    while (end < bad.size() && continues(end)) ++end;
    Finding finding;
    finding.address = bad[begin].address;
    finding.blocks = end - begin;
    finding.error = bad[begin].error;
    finding.ino = bad[begin].ino;
    finding.file_block = bad[begin].file_block;
    store_.faults().note(Errc::corrupt, finding.address, finding.ino);
    report_(finding);
    begin = end;
  }
}

}  // namespace varve::scrub
