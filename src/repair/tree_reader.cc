#include "repair/tree_reader.h"

#include "base/buffer.h"
#include "format/item.h"
#include "io/patient_read.h"

namespace varve::repair {

using format::NodeHeader;
using format::NodeRef;

std::vector<TreeGap> TreeReader::run() {
  const Child root{tree_.ref, {format::kMinKey, format::kMaxKey}, {}};
  if (visit({&root, 1}, tree_.level) != tree_.ref.blocks) plan_.sound = false;
  return std::move(gaps_);
}

bool TreeReader::enter(const NodeRef& ref) {
  const BlockAddr end = super_.first_segment + super_.segments * super_.segment_blocks;
  if (ref.address < super_.first_segment || ref.address >= end || ref.address.v >= seen_.size() || seen_[ref.address.v])
    return false;
  seen_[ref.address.v] = true;
  return true;
}

void TreeReader::miss(const KeyRange& range, unsigned level) {
  plan_.sound = false;
  if (!range.empty()) gaps_.push_back({range, level});
}

std::uint64_t TreeReader::visit(std::span<const Child> children, unsigned level) {
  AlignedBuffer buffer(children.size() * kBlockSize);
  std::vector<io::ReadPiece> pieces;
  for (std::size_t i = 0; i < children.size(); ++i)
    if (enter(children[i].ref))
      pieces.push_back({children[i].ref.address, buffer.span().subspan(i * kBlockSize, kBlockSize)});
  io::read_pieces(device_, pieces);
  std::uint64_t blocks = 0;
  auto piece = pieces.begin();
  for (const Child& child : children) {
    const bool read = piece != pieces.end() && piece->address == child.ref.address;
    const auto* const at = read ? &*piece++ : nullptr;
    if (!at || at->error) {
      miss(child.range, level);
      continue;
    }
    const format::NodeExpectation expected{super_.identity, child.ref.address, child.ref.crc,
                                           tree_.tree, static_cast<int>(level)};
    const auto header = format::check_node(at->out, expected);
    if (!header.ok() || !format::decode_node_header(at->out).ok()) {
      miss(child.range, level);
      continue;
    }
    if (header->serial > super_.serial || (child.first && *child.first != header->first)) plan_.sound = false;
    const std::uint64_t below = level == 0 ? visit_leaf(child, at->out, *header) : visit_interior(child, at->out, *header);
    if (below != child.ref.blocks) plan_.sound = false;
    blocks += below;
  }
  return blocks;
}

std::uint64_t TreeReader::visit_leaf(const Child& child, std::span<const std::byte> block, const NodeHeader& header) {
  const auto items = format::decode_items(block, header);
  if (!items.ok()) {
    miss(child.range, 0);
    return 0;
  }
  std::uint64_t blocks = 0;
  for (const format::ItemRef& item : *items) {
    if (!child.range.contains(item.key)) {
      plan_.sound = false;
      ++plan_.misplaced_items;
    }
    if (item.key.kind != format::ItemKind::extent || item.key.ino == format::kOrphanIno) continue;
    if (const auto length = format::extent_length(item.value); length.ok()) blocks += *length;
  }
  plan_.nodes.push_back(header.address);
  plan_.leaves.push_back({header.address, child.ref.crc, child.range, Trust::tree, {}, true});
  return blocks;
}

std::uint64_t TreeReader::visit_interior(const Child& child, std::span<const std::byte> block,
                                         const NodeHeader& header) {
  const auto refs = format::decode_children(block, header);
  if (!refs.ok()) {
    miss(child.range, header.level);
    return 0;
  }
  plan_.nodes.push_back(header.address);
  std::vector<Child> children;
  for (std::size_t i = 0; i < refs->size(); ++i) {
    const format::Key lower = i == 0 ? child.range.lower : (*refs)[i].first;
    const format::Key upper = i + 1 < refs->size() ? (*refs)[i + 1].first : child.range.upper;
    const KeyRange range = common({lower, upper}, child.range);
    if (i > 0 && !child.range.contains(lower)) plan_.sound = false;
    children.push_back({(*refs)[i].ref, range, (*refs)[i].first});
  }
  return visit(children, header.level - 1U);
}

}  // namespace varve::repair
