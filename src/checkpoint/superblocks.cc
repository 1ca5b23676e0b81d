#include "checkpoint/superblocks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/buffer.h"
#include "io/foreign_content.h"
#include "io/patient_read.h"

namespace varve::checkpoint {

namespace {

// `told`: how many blocks it tells of, also if it is torn.
Result<format::Superblock> read_copy(io::BlockDevice& device, std::uint64_t block, std::uint64_t& told) {
  AlignedBuffer buffer(kBlockSize);
  TRY(io::read_patiently(device, block << kBlockShift, buffer.span()));
  told = format::told_device_blocks(buffer.span());
  return format::decode_superblock(buffer.span());
}

// It stands in the last block of the filesystem, which the first copy tells, or else of the device.
Result<format::Superblock> read_second(io::BlockDevice& device, const Result<format::Superblock>& first, std::uint64_t told) {
  const std::uint64_t device_blocks = device.geometry().blocks();
  std::uint64_t unused = 0;
  if (first.ok() && told > device_blocks) return Errc::corrupt;
  if (first.ok()) return read_copy(device, told - 1, unused);
  if (told != 0 && told < device_blocks)
    if (auto second = read_copy(device, told - 1, unused); second.ok() && second->device_blocks == told) return second;
  return read_copy(device, device_blocks - 1, unused);
}

// Block 0 belongs to something else: what is left of an old filesystem behind it does not count.
Status refuse_foreign_content(io::BlockDevice& device, bool has_magic) {
  const std::string content = io::find_newcomer(device, has_magic);
  if (content.empty()) return {};
  return Error(Errc::not_varve, fmt::format("{0} holds {1}, not a Varve filesystem (if there was one before, fsck.varve --search "
                                            "{0} says what is left of it, and with -y takes it back, which destroys what is "
                                            "there now)", device.name(), content));
}

// Programs that look for a filesystem by name read block 0 alone.
bool same_names(const format::Superblock& a, const format::Superblock& b) { return a.label == b.label && a.uuid == b.uuid; }

std::string look_for_a_copy(const io::BlockDevice& device) {
  return fmt::format("fsck.varve -n {0} looks for a copy in the log and says what it would bring back, fsck.varve -y {0} does it",
                     device.name());
}

// Of block 0 and the last block.
Result<Superblocks> choose_copy(io::BlockDevice& device, const Result<format::Superblock>& first,
                                const Result<format::Superblock>& second) {
  if (first.fails_with(Errc::io) && second.fails_with(Errc::io)) return first.error();
  for (const auto* copy : {&first, &second})
    if (!copy->ok() && copy->error().is(Errc::unknown_feature)) return copy->error();
  if (!first.ok() && !first.fails_with(Errc::io)) TRY(refuse_foreign_content(device, !first.fails_with(Errc::not_varve)));
  if (!first.ok() && !second.ok()) {
    if (first.error().is(Errc::not_varve) && second.error().is(Errc::not_varve))
      return Error(Errc::not_varve, fmt::format("{} is not a Varve filesystem (make one with mkfs.varve; if there was one, "
                                                "fsck.varve --search may find it)", device.name()));
    return Error(Errc::needs_fsck, fmt::format("{}: both superblocks are damaged; {}", device.name(), look_for_a_copy(device)));
  }
  const bool use_second = !first.ok() || (second.ok() && second->serial > first->serial);
  return Superblocks{use_second ? *second : *first, first.ok() && second.ok() && *first == *second};
}

// What the slots say, of which one of the anchors has told the place.
Result<Superblocks> choose_slot(io::BlockDevice& device, const Superblocks& anchors) {
  const format::SuperblockRing ring = read_ring(device, anchors.best);
  if (const Error* newer = ring.unknown_feature()) return *newer;
  if (!ring.newest())
    return Error(Errc::needs_fsck, fmt::format("{}: all superblocks are damaged; {}", device.name(), look_for_a_copy(device)));
  if (ring.may_lack_newer())
    return Error(Errc::needs_fsck, fmt::format("{}: both superblocks behind number {} are damaged, which may have been newer; {}",
                                            device.name(), ring.newest()->sequence, look_for_a_copy(device)));
  const bool equal = anchors.equal && same_names(anchors.best, *ring.newest()) &&
                     anchors.best.device_blocks == ring.newest()->device_blocks && ring.is_pair() && ring.after_newest().ok();
  return Superblocks{*ring.newest(), equal};
}

Error cut_off(const io::BlockDevice& device, const format::Superblock& super) {
  return Error(Errc::invalid, fmt::format("{} is smaller ({} blocks) than the filesystem on it ({} blocks): is it cut off?", device.name(),
                                          device.geometry().blocks(), super.device_blocks));
}

Status write_slot(io::BlockDevice& device, const format::Superblock& super) {
  AlignedBuffer slot = AlignedBuffer::zeroed(super.area.slot_blocks * kBlockSize);
  format::encode_superblock(super, slot.span());
  return device.write(super.area.place_of(super.sequence).v << kBlockShift, slot.span());
}

// A program that takes no notice of leases may have written a newer one, where ours would go next.
Status expect_older(io::BlockDevice& device, const format::Superblock& super) {
  AlignedBuffer slot(kBlockSize);
  const BlockAddr next = super.area.place_of(super.sequence + 1);
  if (!device.read(next.v << kBlockShift, slot.span()).ok()) return {};
  const auto found = format::decode_superblock(slot.span());
  if (!found.ok() || found->identity != super.identity || found->sequence <= super.sequence) return {};
  return Error(Errc::in_use, fmt::format("{} has been written to by another program: block {} holds a superblock with number {}",
                                         device.name(), next, found->sequence));
}

// Both tell where the area is, how long the filesystem is and what it is called, and the same.
bool anchors_fit(io::BlockDevice& device, const format::Superblock& super) {
  std::uint64_t told = 0;
  const auto first = read_copy(device, 0, told), second = read_copy(device, super.device_blocks - 1, told);
  return first.ok() && second.ok() && *first == *second && first->identity == super.identity && first->area == super.area &&
         first->device_blocks == super.device_blocks && same_names(*first, super);
}

enum class First : std::uint8_t { start, end };

// Never the only good one: the write may be torn. The one at the end is good only if it is of this size.
First first_to_restore(io::BlockDevice& device, const format::Superblock& super) {
  std::uint64_t unused = 0;
  const auto end = read_copy(device, super.device_blocks - 1, unused);
  const bool is_good = end.ok() && end->identity == super.identity && end->device_blocks == super.device_blocks;
  return is_good ? First::start : First::end;
}

// Both copies in their places, or both anchors.
Status write_at_both_ends(io::BlockDevice& device, const format::Superblock& super, const std::function<Status()>& flush, First first) {
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  format::encode_superblock(super, block.span());
  std::array<std::uint64_t, 2> places{0, super.device_blocks - 1};
  if (first == First::end) std::swap(places[0], places[1]);
  for (const std::uint64_t at : places) {
    TRY(device.write(at << kBlockShift, block.span()));
    TRY(flush());
  }
  return {};
}

}  // namespace

Result<Superblocks> read_superblocks(io::BlockDevice& device) {
  const std::uint64_t device_blocks = device.geometry().blocks();
  if (device_blocks < format::kMinDeviceBlocks)
    return Error(Errc::not_varve, fmt::format("{} ({} bytes) is smaller than any Varve filesystem", device.name(),
                                              device.geometry().size_bytes.get()));
  std::uint64_t told = 0;
  Result<format::Superblock> first = read_copy(device, 0, told);
  Result<format::Superblock> second = read_second(device, first, told);
  Superblocks result = TRY(choose_copy(device, first, second));
  if (result.best.device_blocks > device_blocks) return cut_off(device, result.best);
  if (!result.best.area) return result;
  result = TRY(choose_slot(device, result));
  if (result.best.device_blocks > device_blocks) return cut_off(device, result.best);
  return result;
}

Result<format::Superblock> read_identity(io::BlockDevice& device) {
  if (device.geometry().blocks() < format::kMinDeviceBlocks) return Errc::not_varve;
  std::uint64_t told = 0;
  Result<format::Superblock> first = read_copy(device, 0, told);
  if (first.ok()) return first;
  if (!first.fails_with(Errc::io)) TRY(refuse_foreign_content(device, !first.fails_with(Errc::not_varve)));
  return read_second(device, first, told);
}

format::SuperblockRing read_ring(io::BlockDevice& device, const format::Superblock& anchor) {
  const format::SuperblockArea& area = anchor.area;
  AlignedBuffer bytes(area.blocks() * kBlockSize);
  const bool whole = device.read(area.start.v << kBlockShift, bytes.span()).ok();
  std::vector<Result<format::Superblock>> slots;
  for (std::uint64_t i = 0; i < area.slots; ++i) {
    const std::uint64_t at = i * area.slot_blocks;
    const auto block = bytes.span().subspan(at * kBlockSize, kBlockSize);
    const Status read = whole ? Status() : io::read_patiently(device, (area.start.v + at) << kBlockShift, block);
    slots.push_back(read.ok() ? format::decode_slot(anchor, i, block) : Result<format::Superblock>(read.error()));
  }
  return {area, std::move(slots)};
}

Status write_superblocks(io::BlockDevice& device, format::Superblock& super, const std::function<Status()>& flush,
                         std::uint64_t former_blocks) {
  if (!super.area)
    return write_at_both_ends(device, super, flush, former_blocks == super.device_blocks ? First::start : First::end);
  TRY(expect_older(device, super));
  for (int copy = 0; copy < 2; ++copy) {
    ++super.sequence;
    TRY(write_slot(device, super));
    TRY(flush());
  }
  return {};
}

Status restore_superblocks(io::BlockDevice& device, format::Superblock& super, const std::function<Status()>& flush) {
  if (!super.area) return write_at_both_ends(device, super, flush, first_to_restore(device, super));
  const format::SuperblockRing ring = read_ring(device, super);
  if (ring.newest()) super.sequence = std::max(super.sequence, ring.newest()->sequence);
  // On until no damaged slot follows: two of them would mean that a newer one is lost.
  for (std::uint32_t i = 0; i < super.area.slots; ++i) {
    TRY(write_superblocks(device, super, flush, super.device_blocks));
    const format::SuperblockRing now = read_ring(device, super);
    if (!now.newest()) return Error(Errc::io, fmt::format("{}: superblocks that were written cannot be read", device.name()));
    if (now.after_newest().ok()) break;
  }
  return anchors_fit(device, super) ? Status() : write_anchors(device, super, flush);
}

Status write_anchors(io::BlockDevice& device, const format::Superblock& super, const std::function<Status()>& flush) {
  if (!super.area) return {};
  format::Superblock anchor = super;
  anchor.sequence = 0;
  return write_at_both_ends(device, anchor, flush, first_to_restore(device, super));
}

Status wipe_former_ends(io::BlockDevice& device, const format::Superblock& super, std::uint64_t former_blocks) {
  for (const std::uint64_t end : {device.geometry().blocks(), former_blocks}) {
    if (end <= super.device_blocks || end > device.geometry().blocks()) continue;
    std::uint64_t unused = 0;
    const auto found = read_copy(device, end - 1, unused);
    if (!found.ok() || found->identity != super.identity) continue;
    const AlignedBuffer zeros = AlignedBuffer::zeroed(kBlockSize);
    TRY(device.write((end - 1) << kBlockShift, zeros.span()));
  }
  return {};
}

bool device_answers(io::BlockDevice& device, std::uint64_t device_blocks) {
  AlignedBuffer block(kBlockSize);
  return std::ranges::any_of(std::array{std::uint64_t{0}, device_blocks - 1},
                             [&](std::uint64_t at) { return device.read(at << kBlockShift, block.span()).ok(); });
}

}  // namespace varve::checkpoint
