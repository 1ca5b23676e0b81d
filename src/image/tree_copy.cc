#include "image/tree_copy.h"

#include <algorithm>
#include <limits>

#include "base/invariant.h"
#include "io/patient_read.h"

namespace varve::image {

using format::NodeHeader;
using format::NodeRef;

namespace {

// Their bytes are content of files, which an image has not.
void blank_tail(const format::Key& key, std::span<std::byte> value) {
  if (key.kind == format::ItemKind::extent && format::is_tail(value)) std::ranges::fill(value.subspan(1), std::byte{0});
}

}  // namespace

bool TreeCopy::claim(BlockAddr place) {
  if (!place || place.v >= done_.size() || done_[place.v]) return false;
  done_[place.v] = true;
  return true;
}

std::uint32_t TreeCopy::crc_of(BlockAddr place, std::uint32_t expected) const {
  const auto at = changed_.find(place.v);
  return at == changed_.end() ? expected : at->second;
}

void TreeCopy::note(BlockAddr place, std::uint32_t crc, std::uint32_t expected) {
  if (crc != expected) changed_[place.v] = crc;
}

Result<std::uint32_t> TreeCopy::copy(const NodeRef& root, const CopiedTree& tree, const Editor& editor) {
  if (!root) return root.crc;
  const Walk walk{tree, editor};
  return TRY(copy_nodes(walk, {&root, 1}, tree.level)).front();
}

// Siblings are read together.
Result<std::vector<std::uint32_t>> TreeCopy::copy_nodes(const Walk& walk, std::span<const NodeRef> refs, unsigned level) {
  AlignedBuffer buffer(refs.size() * kBlockSize);
  std::vector<io::ReadPiece> pieces;
  std::vector<std::size_t> piece_of(refs.size(), std::numeric_limits<std::size_t>::max());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const BlockAddr place = place_of(walk, refs[i].address);
    if (!refs[i] || !claim(place)) continue;
    piece_of[i] = pieces.size();
    pieces.push_back({place, buffer.span().subspan(i * kBlockSize, kBlockSize)});
  }
  io::read_pieces(source_, pieces);
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const BlockAddr place = place_of(walk, refs[i].address);
    if (piece_of[i] >= pieces.size()) {
      if (names_) names_->pass_by(place);
    } else if (pieces[piece_of[i]].error) {
      ++report_.unreadable;
    } else {
      const auto block = buffer.span().subspan(i * kBlockSize, kBlockSize);
      note(place, TRY(copy_node(walk, refs[i], place, block, level)), refs[i].crc);
      if (names_) names_->leave(place);
    }
    crcs.push_back(crc_of(place, refs[i].crc));
  }
  return crcs;
}

Status TreeCopy::copy_damaged(format::TreeId tree, BlockAddr place, std::span<const std::byte> block) {
  ++report_.damaged;
  if ((names_ || leaves_out_damaged_) && format::is_item_tree(tree)) return ++report_.left_out, Status();
  ++report_.nodes;
  return write_(place, block);
}

Result<std::uint32_t> TreeCopy::copy_node(const Walk& walk, const NodeRef& ref, BlockAddr place, std::span<std::byte> block,
                                          unsigned level) {
  const format::TreeId tree = walk.tree.tree;
  const auto header = format::check_node(block, {identity_, ref.address, ref.crc, tree, static_cast<int>(level)});
  if (!header.ok()) {
    TRY(copy_damaged(tree, place, block));
    return ref.crc;
  }
  if (!format::is_item_tree(tree)) {
    TRY(copy_map_node(walk, *header, place, block));
    return ref.crc;
  }
  return level == 0 ? copy_leaf(walk, *header, place, block) : copy_interior(walk, *header, place, block);
}

Status TreeCopy::copy_map_node(const Walk& walk, const NodeHeader& header, BlockAddr place, std::span<std::byte> block) {
  ++report_.nodes;
  TRY(write_(place, block));
  if (header.level == 0) return {};
  const auto slots = format::decode_map_slots(block, header);
  if (!slots.ok()) return ++report_.damaged, Status();
  TRY(copy_nodes(walk, *slots, header.level - 1U));
  return {};
}

Result<std::uint32_t> TreeCopy::copy_leaf(const Walk& walk, const NodeHeader& header, BlockAddr place, std::span<std::byte> block) {
  const auto items = format::decode_items(block, header);
  if (!items.ok()) {
    TRY(copy_damaged(header.tree, place, block));
    return format::block_crc(block);
  }
  format::LeafBuilder builder(header.tree);
  bool is_same = true;
  for (const format::ItemRef& item : *items) {
    std::vector<std::byte> value(item.value.begin(), item.value.end());
    if (walk.editor) walk.editor(item.key, value);
    blank_tail(item.key, value);
    if (names_) names_->change(item.key, value);
    is_same = is_same && std::ranges::equal(value, item.value);
    INVARIANT(builder.add(item.key, value));  // as long as before
  }
  if (!is_same) builder.finish(block, header.identity, header.serial, header.address);
  return put(place, block);
}

Result<std::uint32_t> TreeCopy::copy_interior(const Walk& walk, const NodeHeader& header, BlockAddr place, std::span<std::byte> block) {
  const auto children = format::decode_children(block, header);
  if (!children.ok()) {
    TRY(copy_damaged(header.tree, place, block));
    return format::block_crc(block);
  }
  std::vector<NodeRef> refs;
  for (const format::ChildRef& child : *children) refs.push_back(child.ref);
  const auto crcs = TRY(copy_nodes(walk, refs, header.level - 1U));
  format::InteriorBuilder builder(header.tree);
  bool is_same = true;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    format::ChildRef child = (*children)[i];
    is_same = is_same && child.ref.crc == crcs[i];
    child.ref.crc = crcs[i];
    INVARIANT(builder.add(child));
  }
  if (!is_same) builder.finish(block, header.level, header.identity, header.serial, header.address);
  return put(place, block);
}

// A block that nobody had to change stays as it is, byte for byte.
Result<std::uint32_t> TreeCopy::put(BlockAddr place, std::span<const std::byte> block) {
  ++report_.nodes;
  TRY(write_(place, block));
  return format::block_crc(block);
}

Status TreeCopy::copy_alone(BlockAddr place) {
  if (!claim(place)) return {};
  AlignedBuffer buffer(kBlockSize);
  if (!io::read_patiently(source_, place.v * kBlockSize, buffer.span()).ok()) return ++report_.unreadable, Status();
  const auto header = format::decode_node_header(buffer.span());
  if (!header.ok() || header->identity != identity_) return copy_damaged(format::TreeId::inode_file, place, buffer.span());
  const CopiedTree tree{header->tree, header->level};
  const Walk walk{tree, {}};
  if (names_) names_->pass_by({});
  if (header->level == 0 && format::is_item_tree(header->tree)) {
    TRY(copy_leaf(walk, *header, place, buffer.span()));
    return {};
  }
  ++report_.nodes;
  return write_(place, buffer.span());
}

}  // namespace varve::image
