#include "check/inode_pass.h"

#include <dirent.h>

#include "base/counted.h"

namespace varve::check {

using format::ItemKind;

std::uint64_t InodePass::visit(const format::ItemRef& item, BlockAddr leaf) {
  const Ino ino = item.key.ino;
  if (ino == format::kOrphanIno) {
    visit_hidden(item);
    return 0;
  }
  if (ino != ino_) begin_inode(ino);
  switch (item.key.kind) {
    case ItemKind::extent: return visit_extent(item, leaf);
    case ItemKind::dirent: directory_.add_entry(context_, item, names_); break;
    case ItemKind::name_hash: directory_.add_hash(context_, item); break;
    case ItemKind::xattr: xattrs_.add(item.key.offset, item.value); break;
    case ItemKind::symlink: symlink_.add(item.key.offset, item.value); break;
    case ItemKind::attributes: visit_attributes(item, leaf); break;
    case ItemKind::orphan: context_.add(Code::item_misplaced, {leaf, ino}, "an entry of the list of orphans"); break;
    default: break;  // .ifile has no others
  }
  return 0;
}

void InodePass::gap() {
  torn_ = true;
  after_gap_ = true;
}

void InodePass::finish() {
  end_inode();
  if (verifier_) verifier_->finish();
}

void InodePass::end_inode() {
  if (!has_attributes_ && !torn_) context_.add(Code::no_attributes, {{}, ino_});
  has_attributes_ = true;
}

void InodePass::begin_inode(Ino ino) {
  end_inode();
  torn_ = after_gap_;
  after_gap_ = false;
  ino_ = ino;
  has_attributes_ = false;
  owned_ = extent_end_ = written_end_ = tail_end_ = 0;
  directory_.begin(ino);
  xattrs_.clear();
  symlink_.clear();
}

void InodePass::visit_hidden(const format::ItemRef& item) {
  if (item.key.kind == ItemKind::orphan && item.key.offset != 0) names_.orphans.push_back(Ino{item.key.offset});
  else context_.add(Code::item_misplaced, {}, "under the list of orphans");
  context_.report.statistics.orphans = names_.orphans.size();
}

std::uint64_t InodePass::visit_extent(const format::ItemRef& item, BlockAddr leaf) {
  if (format::is_tail(item.value)) return visit_tail(item, leaf);
  const auto extent = format::decode_extent(item.value);
  const std::uint64_t first = item.key.offset;
  if (!extent.ok() || first > format::kMaxFileBlocks || extent->length > format::kMaxFileBlocks - first) {
    context_.add(Code::value_damaged, {leaf, ino_},
                 fmt::format("extent at {}: {}", first, extent.ok() ? "too far" : extent.error().message()));
    context_.incomplete = true;
    return 0;
  }
  if (first < extent_end_)
    context_.add(Code::extents_overlap, {leaf, ino_}, fmt::format("at file block {}", first));
  extent_end_ = first + extent->length;
  owned_ += extent->length;
  ++context_.report.statistics.extents;
  if (extent->unwritten) {
    context_.report.statistics.unwritten_blocks += extent->length;
    return extent->length;
  }
  written_end_ = extent_end_;
  if (extent->clock > context_.super().clock / context_.super().clock_unit)
    context_.add(Code::clock_from_future, {leaf, ino_}, fmt::format("file block {}", first));
  claim_extent(first, *extent);
  return extent->length;
}

// It owns no block. Whether it is where the file ends is judged with the attributes.
std::uint64_t InodePass::visit_tail(const format::ItemRef& item, BlockAddr leaf) {
  const auto tail = format::decode_tail(item.value);
  const std::uint64_t first = item.key.offset;
  const bool is_told = context_.super().features.incompat & format::kIncompatTails;
  if (!tail.ok() || !is_told || tail_end_ || first >= format::kMaxFileBlocks) {
    std::string why = "too far";
    if (!tail.ok()) why = tail.error().message();
    else if (!is_told) why = "a tail, of which the superblock does not tell";
    else if (tail_end_) why = "a second tail";
    context_.add(Code::value_damaged, {leaf, ino_}, fmt::format("extent at {}: {}", first, why));
    context_.incomplete = true;
    return 0;
  }
  if (first < extent_end_) context_.add(Code::extents_overlap, {leaf, ino_}, fmt::format("a tail at file block {}", first));
  extent_end_ = first + 1;
  tail_end_ = (first << kBlockShift) + tail->size();
  return 0;
}

void InodePass::claim_extent(std::uint64_t first, const format::Extent& extent) {
  bool inside = true;
  for (std::uint64_t i = 0; i < extent.length; ++i)
    inside &= claims_.claim(extent.address + i, entry_of(ino_, first, extent, i)) != Claim::outside;
  if (!inside)
    context_.add(Code::address_outside, {extent.address, ino_},
                 fmt::format("{} from file block {}", counted(extent.length, "block"), first));
  else if (verifier_)
    verifier_->add({ino_, first, extent});
}

void InodePass::visit_attributes(const format::ItemRef& item, BlockAddr leaf) {
  has_attributes_ = true;
  const auto attributes = format::decode_attributes(item.value);
  if (!attributes.ok() || item.key.offset != 0) {
    context_.add(Code::value_damaged, {leaf, ino_}, attributes.ok() ? "second attributes" : attributes.error().message());
    context_.incomplete = true;
    return;
  }
  if (ino_.v >= std::min(context_.super().next_ino, format::kInoLimit))
    context_.add(Code::inode_number_too_high, {leaf, ino_}, fmt::format("the next is {}", context_.super().next_ino));
  check_attributes(context_, ino_, *attributes);
  count(*attributes);
  if (torn_) return;
  check_extents(*attributes);
  check_xattrs(context_, ino_, xattrs_);
  check_symlink(context_, ino_, *attributes, symlink_);
  if (type_of(*attributes) == DT_DIR) directory_.finish(context_, *attributes);
  else if (!directory_.empty()) context_.add(Code::item_misplaced, {leaf, ino_}, "entries in what is no directory");
}

void InodePass::check_extents(const format::Attributes& attributes) {
  if (attributes.blocks != owned_)
    context_.add(Code::blocks_wrong, {{}, ino_}, fmt::format("{} instead of {}", attributes.blocks, owned_));
  if ((owned_ > 0 || tail_end_) && type_of(attributes) != DT_REG)
    context_.add(Code::item_misplaced, {{}, ino_}, "file blocks in what is no regular file");
  else if (written_end_ > blocks_for(attributes.size))
    context_.add(Code::extent_past_end, {{}, ino_},
                 fmt::format("{}, the size is {}", counted(written_end_, "block"), counted(attributes.size, "byte")));
  else if (tail_end_ > attributes.size || (tail_end_ && blocks_for(tail_end_) != blocks_for(attributes.size)))
    context_.add(Code::value_damaged, {{}, ino_},
                 fmt::format("a tail up to byte {}, the size is {}", tail_end_, counted(attributes.size, "byte")));
}

void InodePass::count(const format::Attributes& attributes) {
  Statistics& statistics = context_.report.statistics;
  const std::uint8_t type = type_of(attributes);
  ++statistics.inodes;
  statistics.directories += type == DT_DIR;
  statistics.files += type == DT_REG;
  statistics.symlinks += type == DT_LNK;
  InodeFacts facts;
  facts.ino = ino_;
  facts.parent = attributes.parent;
  facts.nlink = attributes.nlink;
  facts.type = type;
  // Keys out of order were reported; the table must stay sorted all the same.
  const bool in_order = names_.inodes.empty() || names_.inodes.back().ino < ino_;
  if (in_order && !names_.is_full(context_)) names_.inodes.push_back(facts);
  else context_.incomplete = true;
}

std::uint64_t ExtentClaimer::visit(const format::ItemRef& item, BlockAddr) {
  if (item.key.kind != ItemKind::extent || item.key.ino == format::kOrphanIno) return 0;
  const auto extent = format::decode_extent(item.value);
  if (!extent.ok()) return 0;
  for (std::uint64_t i = 0; !extent->unwritten && i < extent->length; ++i)
    claims_.claim(extent->address + i, entry_of(item.key.ino, item.key.offset, *extent, i));
  return extent->length;
}

}  // namespace varve::check
