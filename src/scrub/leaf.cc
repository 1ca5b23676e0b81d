// The part of the walk that reads files' blocks.
#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "changes/inode.h"
#include "changes/layers.h"
#include "device/faults.h"
#include "format/item.h"
#include "scrub/walk.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::scrub {

using format::ItemKind;
using format::Key;

void Walk::verify_leaf() {
  std::vector<Block> blocks;
  doubtful_ = false;
  const Place next = is_map()                                   ? Place{leaf_->bound}
                     : position_.tree == format::TreeId::snapshots ? collect_kept(blocks)
                                                                : collect(blocks);
  read_blocks(blocks);
  std::erase_if(blocks, [](const Block& block) { return block.error.empty(); });
  if (!blocks.empty() || doubtful_) {
    if (!is_current()) return;  // once more, on the new checkpoint
    std::erase_if(blocks, [&](Block& block) { return is_of_nobody(block); });
    report_blocks(blocks);
  }
  position_.next = next.next;
  left_ = next.left;
  if (position_.next >= leaf_->bound) leaf_.reset();
}

// The blocks of the leaf's extents from the position on, as many as fit in a step. Returns where to go on.
Walk::Place Walk::collect(std::vector<Block>& blocks) {
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
    if (!blocks.empty() && step_.blocks + blocks.size() + extent->length > kStepBlocks) return {key};
    const bool is_begun = key < position_.next;
    const std::size_t before = blocks.size();
    for (std::uint64_t i = is_begun ? position_.next.offset - key.offset : 0; i < extent->length; ++i) {
      Block block;
      block.address = extent->address + i;
      block.ino = key.ino;
      block.file_block = key.offset + i;
      block.crc = extent->crcs[i];
      block.birth = store_.snapshots().birth_of(extent->clock);
      blocks.push_back(std::move(block));
    }
    if (shows_snapshot()) find_places(blocks, before);
  }
  return {leaf_->bound};
}

// Of neighbours, as a snapshot's tree names them.
void Walk::find_places(std::vector<Block>& blocks, std::size_t from) {
  if (from == blocks.size()) return;
  const BlockAddr first = blocks[from].address;
  const auto moved = kept_.moved(first, blocks.size() - from);
  if (!moved.ok()) {
    doubtful_ = true;
    blocks.resize(from);
    return;
  }
  for (const auto& [named, place] : *moved) blocks[from + (named - first)].address = place;
}

// What the leaf's lists of dead blocks name, from the position on, as much as fits in a step.
Walk::Place Walk::collect_kept(std::vector<Block>& blocks) {
  const auto items = leaf_->node->items();
  for (auto item = std::ranges::lower_bound(items, position_.next, {}, &format::ItemRef::key); item != items.end(); ++item) {
    if (item->key.kind != ItemKind::dead) continue;
    const auto piece = format::decode_dead(item->value);
    if (!piece.ok()) continue;  // as above
    std::uint64_t length = 0;
    for (const format::DeadRun& run : piece->runs) length += run.length;
    if (length > view_.reverse_map.shape.records) continue;  // there are not so many blocks: fsck's, too
    const bool is_begun = item->key == position_.next && left_ > 0;
    const std::uint64_t from = is_begun ? length - std::min(length, left_) : 0;  // a deletion takes blocks from its beginning
    const std::uint64_t planned = step_.blocks + blocks.size();
    if (planned >= kStepBlocks && !blocks.empty()) return {item->key, is_begun ? left_ : 0};
    const std::uint64_t most = std::max<std::uint64_t>(kStepBlocks - std::min(planned, kStepBlocks), 1);
    if (!kept_.add(*piece, from, most, blocks).ok()) doubtful_ = true;
    if (length - from > most) return {item->key, length - from - most};
  }
  return {leaf_->bound};
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
      run[i].kind = Errc::io;
    } else if (run[i].error.empty()) {
      verify(bytes, run[i]);
    }
  }
}

void Walk::verify(std::span<const std::byte> bytes, Block& block) {
  if (block.is_node) kept_.judge_node(bytes, block);
  else if (crc32c(bytes) != block.crc) block.error = "the data does not match its checksum";
}

// The checkpoint still needs the block, but the file has something newer there.
bool Walk::is_superseded(const Block& block) {
  const Gate::Pass pass(store_.gate());
  const changes::InodePtr inode = store_.inodes().find(block.ino);
  if (!inode) return false;
  ReadLock lock(inode->mutex);
  if (inode->gone()) return true;
  changes::MappedBlock mapped;
  changes::resolve_in_deltas(changes::layers_of(*inode, store_.trees().view()), block.file_block, {&mapped, 1});
  return mapped.kind != changes::MappedBlock::Kind::unknown &&
         !(mapped.kind == changes::MappedBlock::Kind::device && mapped.address == block.address);
}

// A snapshot may still have what a file has let go of.
bool Walk::is_of_nobody(Block& block) {
  if (block.death || shows_snapshot() || !is_superseded(block)) return false;
  if (!kept_.is_kept(block.birth)) return true;
  block.death = Serial{~0ULL};
  return false;
}

// Neighbours with the same fault are one finding.
void Walk::report_blocks(std::vector<Block>& bad) {
  for (std::size_t begin = 0; begin < bad.size();) {
    const auto continues = [&](std::size_t i) {
      const Block &a = bad[i - 1], &b = bad[i];
      return !b.is_node && b.address == a.address + 1 && b.ino == a.ino && b.file_block == a.file_block + 1 && b.death == a.death &&
             b.birth == a.birth;
    };
    std::size_t end = begin + 1;
    while (end < bad.size() && continues(end)) ++end;
    report_block(bad[begin], end - begin);
    begin = end;
  }
}

void Walk::report_block(const Block& block, std::uint64_t blocks) {
  const KeptBlocks::Holders holders = kept_.holders_of(block);
  Finding finding;
  finding.kind = block.is_node ? Finding::Kind::node : Finding::Kind::data;
  finding.address = block.address;
  finding.blocks = blocks;
  finding.error = block.error;
  finding.snapshot = holders.name;
  finding.snapshot_serial = holders.newest;
  finding.snapshots = holders.count;
  if (block.is_node) {
    finding.tree = format::TreeId::inode_file;
    finding.level = block.level;
    if (const auto range = kept_.range_of(block)) {
      finding.first = range->first;
      finding.bound = range->bound;
    }
  } else {
    finding.ino = block.ino;
    finding.file_block = block.file_block;
  }
  store_.faults().note(block.kind, finding.address, finding.ino);
  report_(finding);
}

}  // namespace varve::scrub
