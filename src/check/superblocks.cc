#include "check/superblocks.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/counted.h"
#include "format/chunk.h"
#include "format/make.h"
#include "format/superblock_ring.h"
#include "io/foreign_content.h"
#include "io/patient_read.h"

namespace varve::check {

using format::Superblock;

namespace {

struct Copy {
  BlockAddr address;
  AlignedBuffer bytes = AlignedBuffer::zeroed(kBlockSize);
  Result<Superblock> super = Errc::corrupt;
};

Copy read_copy(io::BlockDevice& device, std::uint64_t block) {
  Copy copy{.address = BlockAddr{block}};
  const Status read = io::read_patiently(device, block * kBlockSize, copy.bytes.span());
  copy.super = read.ok() ? format::decode_superblock(copy.bytes.span()) : Result<Superblock>(read.error());
  return copy;
}

// About a copy that is of no use beside a good one.
void complain(ProblemLog& problems, const char* which, const Copy& bad, const Copy& good) {
  const Error& error = bad.super.error();
  const bool torn = error.is(Errc::corrupt) && format::may_be_torn(bad.bytes.span(), good.bytes.span());
  const Code damage = torn ? Code::superblock_torn : Code::superblock_damaged;
  problems.add(error.is(Errc::io) ? Code::superblock_unreadable : damage, {bad.address, {}},
               fmt::format("{}: {}", which, error.message()));
}

// Without a good first copy: where that tells of the second although it is torn, or else at the end of the device.
Copy find_second(io::BlockDevice& device, const Copy& first) {
  const std::uint64_t blocks = device.geometry().blocks();
  const std::uint64_t told = format::told_device_blocks(first.bytes.span());
  if (told != 0 && told < blocks)
    if (Copy copy = read_copy(device, told - 1); copy.super.ok() && copy.super->device_blocks == told) return copy;
  return read_copy(device, blocks - 1);
}

// The second copy of a filesystem whose first one is good; its place is known exactly. `are_anchors`: older ones are as good.
Superblock with_first(io::BlockDevice& device, const Copy& good, bool are_anchors, ProblemLog& problems) {
  const Superblock& first = *good.super;
  const BlockAddr place{first.device_blocks - 1};
  if (place.v >= device.geometry().blocks()) {
    problems.add(Code::device_too_small, {},
                 fmt::format("{} instead of {}", counted(device.geometry().blocks(), "block"), first.device_blocks));
    return first;
  }
  const Copy copy = read_copy(device, place.v);
  if (!copy.super.ok()) {
    complain(problems, are_anchors ? "the anchor in the last block" : "the second copy", copy, good);
    return first;
  }
  const Result<Superblock>& second = copy.super;
  if (*second == first) return first;
  if (second->identity != first.identity) {
    problems.add(Code::superblock_damaged, {place, {}}, "the second copy: belongs to another filesystem");
    return first;
  }
  problems.add(Code::superblocks_differ, {},
               fmt::format("{} {} and {}", are_anchors ? "anchors of checkpoints" : "checkpoints", first.serial, second->serial));
  return second->serial > first.serial ? *second : first;  // the first copy is written first
}

// What block 0 or the last block says.
Result<Superblock> choose_copy(io::BlockDevice& device, ProblemLog& problems) {
  const Copy first_copy = read_copy(device, 0);
  const Result<Superblock>& first = first_copy.super;
  if (first.ok()) return with_first(device, first_copy, bool{first->area}, problems);
  if (first.fails_with(Errc::unknown_feature)) return first.error();
  if (!first.fails_with(Errc::io)) {
    const std::string content = io::find_newcomer(device, !first.fails_with(Errc::not_varve));
    if (!content.empty())
      return Error(Errc::not_varve, fmt::format("{} holds {}, not a Varve filesystem", device.name(), content));
  }
  const Copy second_copy = find_second(device, first_copy);
  const Result<Superblock>& second = second_copy.super;
  if (!second.ok() && first.fails_with(Errc::not_varve) && second.fails_with(Errc::not_varve))
    return Error(Errc::not_varve, fmt::format("{}: not a Varve filesystem", device.name()));
  if (!second.ok())
    return Error(first.error().code(), fmt::format("{}: no usable superblock: {}; at the end: {}", device.name(),
                                                   first.error().message(), second.error().message()));
  complain(problems, second->area ? "the anchor in block 0" : "the first copy", first_copy, second_copy);
  return second;
}

// --- an area -----------------------------------------------------------------------------------------------------------

std::vector<Copy> read_slots(io::BlockDevice& device, const Superblock& anchor) {
  std::vector<Copy> slots;
  std::vector<io::ReadPiece> pieces;
  for (std::uint64_t i = 0; i < anchor.area.slots; ++i)
    slots.push_back({.address = anchor.area.start + i * anchor.area.slot_blocks});
  for (Copy& slot : slots) pieces.push_back({slot.address, slot.bytes.span()});
  io::read_pieces(device, pieces);
  for (std::size_t i = 0; i < slots.size(); ++i)
    slots[i].super = pieces[i].error ? Result<Superblock>(Errc::io) : format::decode_slot(anchor, i, slots[i].bytes.span());
  return slots;
}

// One of the two slots that a crash may have left behind: that in front of the newest, or behind it.
void judge_neighbour(ProblemLog& problems, const Copy& slot, const Copy& newest) {
  if (!slot.super.ok()) complain(problems, "a slot beside the newest superblock", slot, newest);
}

Result<Superblock> choose_slot(io::BlockDevice& device, const Superblock& anchor, ProblemLog& problems) {
  const std::vector<Copy> slots = read_slots(device, anchor);
  std::vector<Result<Superblock>> decoded;
  for (const Copy& slot : slots) decoded.push_back(slot.super);
  const format::SuperblockRing ring(anchor.area, std::move(decoded));
  if (const Error* newer = ring.unknown_feature()) return *newer;
  if (!ring.newest())
    return Error(Errc::corrupt, fmt::format("{}: no usable superblock in the area at block {}", device.name(), anchor.area.start));
  const Superblock& newest = *ring.newest();
  if (ring.may_lack_newer())
    return Error(Errc::corrupt, fmt::format("{}: both superblocks behind number {} are damaged, which may have been newer", device.name(),
                                            newest.sequence));
  const auto slot = [&](std::uint64_t sequence) -> const Copy& { return slots[anchor.area.index_of(sequence)]; };
  const Copy& best = slot(newest.sequence);
  const Copy& before = slot(newest.sequence + anchor.area.slots - 1);
  judge_neighbour(problems, before, best);
  judge_neighbour(problems, slot(newest.sequence + 1), best);
  if (before.super.ok() && !ring.is_pair())
    problems.add(Code::superblocks_differ, {}, fmt::format("checkpoints {} and {}", newest.serial, before.super->serial));
  return newest;
}

}  // namespace

Result<Superblock> choose_superblock(io::BlockDevice& device, ProblemLog& problems) {
  if (device.geometry().blocks() < format::kMinDeviceBlocks)
    return Error(Errc::not_varve, fmt::format("{}: too small to be a Varve filesystem", device.name()));
  const Superblock chosen = TRY(choose_copy(device, problems));
  if (!chosen.area) return chosen;
  const Superblock newest = TRY(choose_slot(device, chosen, problems));
  // A change of size that a crash has cut off; the next mount writes the anchors.
  if (newest.device_blocks != chosen.device_blocks)
    problems.add(Code::superblocks_differ, {}, fmt::format("anchors of {} blocks, and a checkpoint of {}", chosen.device_blocks,
                                                           newest.device_blocks));
  return newest;
}

void check_image(Context& context, Claims& claims) {
  const Superblock& super = context.super();
  const BlockAddr address = super.image.address;
  format::ReverseEntry owner;
  owner.owner = format::Owner::super_image;
  if (claims.claim(address, owner) == Claim::outside) return context.add(Code::address_outside, {address, {}}, "of the image");
  AlignedBuffer buffer(kBlockSize);
  if (address.v >= context.device.geometry().blocks() ||
      !io::read_patiently(context.device, address.v * kBlockSize, buffer.span()).ok())
    return context.add(Code::node_unreadable, {address, {}}, "the superblock's image");
  const auto image = format::decode_super_image(buffer.span());
  if (!image.ok()) return context.add(Code::image_wrong, {address, {}}, image.error().message());
  // What superblocks are written for without a checkpoint: a mount's epoch and what it lets chunks be, errors, counters.
  Superblock expected = super;
  expected.epoch = image->epoch;
  expected.clean = image->clean;
  expected.lifetime = image->lifetime;
  expected.first_error = image->first_error;
  expected.last_error = image->last_error;
  expected.label = image->label;
  expected.uuid = image->uuid;
  expected.sequence = image->sequence;
  const std::uint64_t of_mounts = format::kIncompatOfMounts;
  expected.features.incompat = (super.features.incompat & ~of_mounts) | (image->features.incompat & of_mounts);
  const bool same = *image == expected;
  if (!same) context.add(Code::image_wrong, {address, {}});
}

void check_runs(Context& context, const Claims& claims) {
  const Superblock& super = context.super();
  std::vector<format::Run> runs{super.chain, super.next_run, super.node_head.rest};
  for (const format::HeadPlace& head : super.heads) runs.push_back(head.rest);
  std::erase_if(runs, [](const format::Run& run) { return run.blocks == 0; });
  std::ranges::sort(runs, {}, [](const format::Run& run) { return run.start; });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0 && runs[i].start < runs[i - 1].end())
      context.add(Code::runs_overlap, {runs[i].start, {}}, counted(runs[i].blocks, "block"));
    for (std::uint32_t b = 0; b < runs[i].blocks; ++b)
      if (const BlockAddr block = runs[i].start + b; claims.is_inside(block) && claims.is_claimed(block)) {
        context.add(Code::run_not_free, {block, {}}, fmt::format("in the {} from {}", counted(runs[i].blocks, "block"), runs[i].start));
        break;
      }
  }
}

void check_counts(Context& context, const Claims& claims) {
  const Superblock& super = context.super();
  auto compare = [&](const char* what, std::uint64_t is, std::uint64_t should) {
    if (is != should) context.add(Code::count_wrong, {}, fmt::format("{} {} instead of {}", what, is, should));
  };
  compare("live blocks", super.live_blocks, claims.live());
  compare("data blocks", super.data_blocks, claims.data() - context.held_data);
  compare("blocks held by snapshots", super.snapshots.held_blocks, context.held_blocks);
  compare("file blocks held by snapshots", super.snapshots.held_data, context.held_data);
  compare("reserved blocks", super.reserved_blocks, context.report.statistics.unwritten_blocks);
  compare("inodes", super.inodes, context.report.statistics.inodes);
  // It stays when the size changes. Which one it had when it was made, nothing tells.
  if (const std::uint64_t most = format::clock_unit_of(format::kMaxAddress); super.clock_unit > most)
    context.add(Code::field_wrong, {}, fmt::format("clock unit {}, more than {}", super.clock_unit, most));
}

// --- the log ----------------------------------------------------------------------------------------------------------

namespace {

// Whether the chunk that follows the checkpoint stands at `place`.
bool continues_at(Context& context, BlockAddr place) {
  const format::Superblock& super = context.super();
  const std::uint64_t blocks = context.device.geometry().blocks();
  if (!place || place.v >= blocks) return false;
  AlignedBuffer buffer(format::kMaxLongHeaderBlocks * kBlockSize);
  if (!io::read_patiently(context.device, place.v * kBlockSize, buffer.span().first(kBlockSize)).ok()) return false;
  const auto peeked = format::peek_chunk(buffer.span());
  if (!peeked.ok() || peeked->address != place || place.v + peeked->header_blocks > blocks) return false;
  const auto bytes = buffer.span().first(peeked->header_blocks * kBlockSize);
  if (!io::read_patiently(context.device, place.v * kBlockSize, bytes).ok()) return false;
  const auto chunk = format::decode_chunk(bytes);
  return chunk.ok() && chunk->header.identity == super.identity && chunk->header.epoch == super.epoch &&
         chunk->header.lsn == super.lsn + 1 && chunk->header.previous_crc == super.chain_crc;
}

}  // namespace

void probe_log(Context& context) {
  const format::Superblock& super = context.super();
  const bool goes_on = (super.chain.blocks > 0 && continues_at(context, super.chain.start)) ||
                       (super.next_run.blocks > 0 && continues_at(context, super.next_run.start));
  context.report.needs_recovery = goes_on;
  if (goes_on && super.clean) context.add(Code::log_after_clean, {}, fmt::format("chunk {}", super.lsn + 1));
  else if (goes_on) context.add(Code::needs_recovery, {}, fmt::format("from chunk {}", super.lsn + 1));
  else if (!super.clean) context.add(Code::not_unmounted, {});
}

}  // namespace varve::check
