#include "image/metadata.h"

#include <algorithm>
#include <map>

#include "base/buffer.h"
#include "check/kept_trees.h"
#include "format/codec.h"
#include "format/image_mark.h"
#include "format/snapshot.h"
#include "image/tree_copy.h"
#include "io/patient_read.h"
#include "log/recovery.h"

namespace varve::image {

namespace {

using format::Superblock;
using format::TreeId;

bool has_tails(const Superblock& super) { return (super.features.incompat & format::kIncompatTails) != 0; }

class Copy {
 public:
  Copy(io::BlockDevice& source, const Superblock& super, io::BlockDevice& target, const Choice& choice)
      : source_(source),
        super_(super),
        target_(target),
        choice_(choice),
        cipher_(super.hash_key),
        names_(cipher_),
        trees_(source, super.identity, super.device_blocks, choice.hashes_names ? &names_ : nullptr, writer(), report_) {}

  Result<Report> run() {
    if (has_tails(super_)) trees_.leave_out_damaged();
    TRY(read_tables());
    TRY(copy_trees());
    TRY(copy_listed());
    TRY(copy_image());
    if (choice_.has_log) TRY(copy_log());
    TRY(copy_superblocks());
    return report_;
  }

 private:
  TreeCopy::Write writer() {
    return [this](BlockAddr place, std::span<const std::byte> block) -> Status {
      if (choice_.advance) TRY(choice_.advance(report_.nodes));
      return write(place, block);
    };
  }
  Status write(BlockAddr place, std::span<const std::byte> blocks);
  Status read_tables();
  Status copy_trees();
  Status copy_listed();
  Status copy_image();
  Status copy_log();
  Status copy_superblocks();
  Status copy_superblock(BlockAddr place);
  Superblock marked(Superblock super) const;
  BlockAddr place_of(BlockAddr named, Serial seen) const;

  io::BlockDevice& source_;
  const Superblock& super_;
  io::BlockDevice& target_;
  const Choice choice_;
  const NameCipher cipher_;
  Names names_;
  Report report_;
  TreeCopy trees_;
  check::SnapshotTables tables_;
  std::map<std::uint64_t, std::uint32_t> roots_;  // of snapshots, by serial: CRCs of their copies
  std::uint32_t inode_file_crc_ = 0, tables_crc_ = 0, image_crc_ = 0;
};

Status Copy::write(BlockAddr place, std::span<const std::byte> blocks) {
  AlignedBuffer buffer(blocks.size());
  std::ranges::copy(blocks, buffer.span().begin());
  return target_.write(place.v * kBlockSize, buffer.span());
}

BlockAddr Copy::place_of(BlockAddr named, Serial seen) const { return tables_.place_of(named, seen); }

// Before anything is copied: where nodes of snapshots stand is in there.
Status Copy::read_tables() {
  const auto& root = super_.snapshots.root;
  Report unused;
  TreeCopy looked(source_, super_.identity, super_.device_blocks, nullptr, [](auto, auto) { return Status(); }, unused);
  const auto take = [this](const format::Key& key, std::span<std::byte> value) { (void)tables_.take({key, value}, super_); };
  TRY(looked.copy(root, {TreeId::snapshots, super_.snapshots.level}, take));
  return {};
}

// Files first, so that the tables can say what has become of the roots of snapshots.
Status Copy::copy_trees() {
  inode_file_crc_ = TRY(trees_.copy(super_.inode_file, {TreeId::inode_file, super_.inode_file_level}));
  for (auto item = tables_.items.rbegin(); item != tables_.items.rend(); ++item) {
    if (item->deleting) continue;
    const auto placed = [this, serial = item->serial](BlockAddr named) { return place_of(named, serial); };
    roots_[item->serial.v] = TRY(trees_.copy(item->inode_file, {TreeId::inode_file, item->inode_file_level, placed}));
  }
  const auto edit = [this](const format::Key& key, std::span<std::byte> value) {
    constexpr std::size_t kCrcAt = 8;  // of the root: flags, level and address come before it
    const auto root = key.kind == format::ItemKind::snapshot ? roots_.find(key.offset) : roots_.end();
    if (root == roots_.end()) return;
    format::Writer(value.subspan(kCrcAt)).put(root->second);
  };
  tables_crc_ = TRY(trees_.copy(super_.snapshots.root, {TreeId::snapshots, super_.snapshots.level}, edit));
  TRY(trees_.copy(super_.reverse_map, {TreeId::reverse_map, format::reverse_map_shape(super_.device_blocks).root_level()}));
  TRY(trees_.copy(super_.free_map, {TreeId::free_map, format::free_map_shape(super_.segments, super_.segment_blocks).root_level()}));
  return {};
}

// Nodes of deleted snapshots, whose room has not come back yet.
Status Copy::copy_listed() {
  for (const auto& [holder, piece, key] : tables_.dead)
    for (const format::DeadRun& run : piece.runs)
      if (run.birth.of_node) TRY(trees_.copy_alone(place_of(run.address, piece.death)));
  return {};
}

Status Copy::copy_image() {
  AlignedBuffer block(kBlockSize);
  if (!trees_.claim(super_.image.address)) return {};
  if (!io::read_patiently(source_, super_.image.address.v * kBlockSize, block.span()).ok()) return ++report_.unreadable, Status();
  const auto image = format::decode_super_image(block.span());
  image_crc_ = super_.image.crc;
  ++report_.nodes;
  if (!image.ok()) return ++report_.damaged, write(super_.image.address, block.span());
  AlignedBuffer copy(kBlockSize);
  image_crc_ = format::encode_super_image(marked(*image), copy.span(), super_.image.address);
  return write(super_.image.address, copy.span());
}

// The log is copied as far as it is whole: the rest can be told neither from data nor from what was there before.
Status Copy::copy_log() {
  AlignedBuffer blocks(std::size_t{format::kMaxLongHeaderBlocks} * kBlockSize);
  const auto visit = [&](const format::Chunk& chunk) -> Status {
    const auto header = blocks.span().first(std::size_t{chunk.header.header_blocks} * kBlockSize);
    TRY(source_.read(chunk.header.address.v * kBlockSize, header));
    report_.log_blocks += chunk.header.header_blocks;
    return target_.write(chunk.header.address.v * kBlockSize, header);
  };
  const auto whole = log::recover_chain(source_, super_, visit);
  report_.log_is_damaged = !whole.ok() || whole->cut_short;
  return {};
}

Superblock Copy::marked(Superblock super) const {
  super.features.incompat |= format::kIncompatImage;
  if (choice_.hashes_names) {
    super.hash_key = {};
    super.label = cipher_.ascii_only(super.label);
  }
  if (!choice_.has_log) {
    format::allow_chunks(super, format::Chunks::none);
    super.clean = true;
    super.epoch = 0;  // that of a mount is nobody's business
  }
  if (super.serial != super_.serial) return super;
  super.inode_file.crc = inode_file_crc_;
  super.snapshots.root.crc = tables_crc_;
  if (super.image) super.image.crc = image_crc_;
  return super;
}

Status Copy::copy_superblock(BlockAddr place) {
  AlignedBuffer block(kBlockSize), copy(kBlockSize);
  if (!io::read_patiently(source_, place.v * kBlockSize, block.span()).ok()) return ++report_.unreadable, Status();
  const auto super = format::decode_superblock(block.span());
  const bool is_ours = super.ok() && super->identity == super_.identity;
  if (!is_ours && choice_.hashes_names) return ++report_.left_out, Status();
  if (!is_ours) return ++report_.damaged, write(place, block.span());
  ++report_.superblocks;
  format::encode_superblock(marked(*super), copy.span());
  return write(place, copy.span());
}

Status Copy::copy_superblocks() {
  if (super_.area)
    for (std::uint64_t number = 1; number <= super_.area.slots; ++number) TRY(copy_superblock(super_.area.place_of(number)));
  TRY(copy_superblock(BlockAddr{0}));
  return copy_superblock(BlockAddr{super_.device_blocks - 1});
}

}  // namespace

Result<Report> copy_metadata(io::BlockDevice& source, const Superblock& super, io::BlockDevice& target, const Choice& choice) {
  if (choice.has_log && choice.hashes_names) return Error(Errc::invalid, "the log has names: an image with other names has none");
  if (choice.has_log && has_tails(super)) return Error(Errc::invalid, "the log may have content of files: an image has none");
  return Copy(source, super, target, choice).run();
}

}  // namespace varve::image
