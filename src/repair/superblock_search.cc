#include "repair/superblock_search.h"

#include <algorithm>
#include <vector>

#include "base/buffer.h"
#include "checkpoint/superblocks.h"
#include "format/chunk.h"
#include "io/patient_read.h"
#include "repair/device_scan.h"
#include "repair/map_builder.h"
#include "repair/tree_reader.h"

namespace varve::repair {

namespace {

using format::Superblock;

constexpr std::size_t kMostTried = 32;  // candidates whose trees are read

// Anchors say nothing of the newest checkpoint; its image does.
bool is_its_place(const Superblock& super, BlockAddr address) {
  if (super.area) return super.sequence != 0 && super.area.place_of(super.sequence) == address;
  return address.v == 0 || address.v == super.device_blocks - 1;
}

// Copies before images: a crash may have left the image of a checkpoint that never was. Not so where the newest copies are lost.
struct Order {
  bool copies_first;

  bool operator()(const FoundSuperblock& a, const FoundSuperblock& b) const {
    if (copies_first && a.image != b.image) return b.image;
    if (a.super.serial != b.super.serial) return a.super.serial > b.super.serial;
    if (a.image != b.image) return b.image;
    if (!a.image && a.super.sequence != b.super.sequence) return a.super.sequence > b.super.sequence;
    // The recovery's checkpoint has the same number as the one that a crash before it has cut off.
    return a.super.lifetime.recoveries > b.super.lifetime.recoveries;
  }
};

bool copies_can_be_believed(io::BlockDevice& device, const std::vector<FoundSuperblock>& found) {
  const auto slot = std::ranges::find_if(found, [](const FoundSuperblock& f) { return !f.image && f.super.area; });
  return slot == found.end() || !checkpoint::read_ring(device, slot->super).may_lack_newer();
}

std::vector<FoundSuperblock> find_all(io::BlockDevice& device, check::Progress* progress) {
  std::vector<FoundSuperblock> found;
  scan_device(device, progress, [&](BlockAddr address, std::span<const std::byte> block) {
    if (const auto super = format::decode_superblock(block); super.ok()) {
      if (is_its_place(*super, address)) found.push_back({*super, address});
    } else if (const auto image = format::decode_super_image(block); image.ok() && image->image.address == address) {
      found.push_back({*image, address, true});
    }
  });
  return found;
}

bool is_whole(io::BlockDevice& device, const Superblock& super) {
  const auto leads_everywhere = [&](const tree::TreeRoot& tree) {
    LeafPlan plan;
    return !tree.ref || TreeReader(device, super, tree, plan).run().empty();
  };
  return leads_everywhere({super.inode_file, super.inode_file_level}) &&
         leads_everywhere({super.snapshots.root, super.snapshots.level, format::TreeId::snapshots}) &&
         read_old_map(device, super, format::TreeId::reverse_map).sound && read_old_map(device, super, format::TreeId::free_map).sound;
}

const Superblock& made_last(const std::vector<FoundSuperblock>& found) {
  return std::ranges::max_element(found, {}, [](const FoundSuperblock& f) { return f.super.made; })->super;
}

// Each mount takes a new epoch and tells only the superblocks. An image is older: the chunk that follows its checkpoint
// knows, and proves by the CRC of the one before it that it belongs there.
void adopt_epoch(io::BlockDevice& device, Superblock& super) {
  AlignedBuffer block(kBlockSize);
  for (const format::Run& run : {super.chain, super.next_run}) {
    if (run.blocks == 0 || !io::read_patiently(device, run.start.v * kBlockSize, block.span()).ok()) continue;
    const auto chunk = format::peek_chunk(block.span());
    if (!chunk.ok() || chunk->identity != super.identity || chunk->address != run.start || chunk->lsn != super.lsn + 1 ||
        chunk->previous_crc != super.chain_crc)
      continue;
    super.epoch = chunk->epoch;
    super.clean = false;
    format::allow_chunks(super, format::Chunks::with_gaps);  // it may follow any
    return;
  }
}

}  // namespace

Result<FoundSuperblock> search_superblock(io::BlockDevice& device, check::Progress* progress, std::uint64_t identity,
                                          Serial above) {
  std::vector<FoundSuperblock> found = find_all(device, progress);
  const std::uint64_t blocks = device.geometry().blocks();
  std::erase_if(found, [&](const FoundSuperblock& f) {
    return f.super.device_blocks > blocks || (identity && f.super.identity != identity) || f.super.serial <= above;
  });
  if (found.empty()) return Error(Errc::not_varve, fmt::format("{}: no superblock of a Varve filesystem anywhere", device.name()));
  identity = made_last(found).identity;
  std::erase_if(found, [&](const FoundSuperblock& f) { return f.super.identity != identity; });
  std::ranges::sort(found, Order{copies_can_be_believed(device, found)});
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), kMostTried));
  auto chosen = std::find_if(found.begin(), end, [&](const FoundSuperblock& f) { return is_whole(device, f.super); });
  const bool whole = chosen != end;
  if (!whole) chosen = found.begin();
  chosen->whole = whole;
  if (chosen->image) adopt_epoch(device, chosen->super);
  return *chosen;
}

std::uint64_t blocks_told_by_images(io::BlockDevice& device) {
  const std::vector<FoundSuperblock> found = find_all(device, nullptr);
  return found.empty() ? 0 : made_last(found).device_blocks;
}

}  // namespace varve::repair
