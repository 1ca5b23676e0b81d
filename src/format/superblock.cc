#include "format/superblock.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/invariant.h"
#include "format/codec.h"
#include "format/lease.h"
#include "format/node_block.h"
#include "format/superblock_parts.h"

namespace varve::format {

namespace {

// Offsets of the fields; docs/format.md has the same table.
constexpr std::size_t kCrcAt = 8;
constexpr std::size_t kVersionAt = 12;
constexpr std::size_t kFeaturesAt = 16;
constexpr std::size_t kUuidAt = 40;
constexpr std::size_t kLabelAt = 56;
constexpr std::size_t kLabelBytes = 64;
constexpr std::size_t kIdentityAt = kLabelAt + kLabelBytes;
constexpr std::size_t kMadeAt = 144;
constexpr std::size_t kDeviceBlocksAt = 160;   // with the number of segments behind it: what changes with the size
constexpr std::size_t kFirstSegmentAt = 176;
constexpr std::size_t kFlagsAt = 188;
constexpr std::size_t kSerialAt = 192;
constexpr std::size_t kChainAt = 232;
constexpr std::size_t kClockAt = 264;
constexpr std::size_t kRefsAt = 288;
constexpr std::size_t kHeadsAt = 384;
constexpr std::size_t kNodeHeadAt = kHeadsAt + kMaxGroups * 16;
constexpr std::size_t kCentresAt = kNodeHeadAt + 16;
constexpr std::size_t kCountsAt = kCentresAt + kMaxGroups * 8;
constexpr std::size_t kLifetimeAt = kCountsAt + 4 * 8;
constexpr std::size_t kErrorsAt = kLifetimeAt + 10 * 8;
constexpr std::size_t kScrubAt = kErrorsAt + 2 * 32;
constexpr std::size_t kCostsAt = kScrubAt + 56;
constexpr std::size_t kAreaAt = kCostsAt + 8;  // as mkfs has fixed it: from here on all versions are the same
constexpr std::size_t kProfileAt = kAreaAt + 16;
constexpr std::size_t kSnapshotsAt = kProfileAt + 16;  // these change again
constexpr std::size_t kSnapshotsEnd = kSnapshotsAt + 96;
constexpr std::size_t kEnd = kSnapshotsEnd;
static_assert(kIdentityAt == 120 && kNodeHeadAt == 640 && kCentresAt == 656 && kCountsAt == 784);
static_assert(kLifetimeAt == 816 && kErrorsAt == 896 && kScrubAt == 960 && kAreaAt == 1024);
static_assert(sizeof(LifetimeCounters) == 10 * 8, "a new counter needs a place on disk");
static_assert(kEnd <= kNodePayloadBytes, "the image holds only the payload of a node");

constexpr std::uint32_t kFlagClean = 1;
constexpr std::size_t kDeviceSector = 512;  // what a device writes as a whole

// --- parts that come more than once ------------------------------------------------------------------------------------
void put_run(Writer& out, const Run& run) {
  out.put(run.start.v);
  out.put(run.blocks);
  out.put(std::uint32_t{0});
}
Run get_run(Reader& in) {
  Run run;
  run.start = BlockAddr{in.u64()};
  run.blocks = in.u32();
  in.u32();
  return run;
}

void put_error(Writer& out, const ErrorEvent& event) {
  out.put(static_cast<std::uint64_t>(event.when.seconds));
  out.put(event.when.nanoseconds);
  out.put(event.code);
  out.put(event.address.v);
  out.put(event.ino.v);
}
ErrorEvent get_error(Reader& in) {
  ErrorEvent event;
  event.when.seconds = static_cast<std::int64_t>(in.u64());
  event.when.nanoseconds = in.u32();
  event.code = in.u32();
  event.address = BlockAddr{in.u64()};
  event.ino = Ino{in.u64()};
  return event;
}

void put_scrub(Writer& out, const ScrubMark& mark) {
  out.put(static_cast<std::uint64_t>(mark.started));
  out.put(static_cast<std::uint64_t>(mark.finished));
  out.put(static_cast<std::uint8_t>(mark.tree));
  out.put(static_cast<std::uint8_t>(mark.next.kind));
  out.skip_to(kScrubAt + 24);
  out.put(mark.next.ino.v);
  out.put(mark.next.offset);
  out.put(mark.blocks);
  out.put(mark.errors);
}
ScrubMark get_scrub(Reader& in) {
  ScrubMark mark;
  mark.started = static_cast<std::int64_t>(in.u64());
  mark.finished = static_cast<std::int64_t>(in.u64());
  const std::uint8_t tree = in.u8();
  mark.next.kind = static_cast<ItemKind>(in.u8());
  in.skip_to(kScrubAt + 24);
  mark.next.ino = Ino{in.u64()};
  mark.next.offset = in.u64();
  mark.blocks = in.u64();
  mark.errors = in.u64();
  // It is only a hint where to go on: nonsense in it costs a new beginning, not a mount.
  mark.tree = static_cast<TreeId>(tree);
  if (tree < 1 || mark.tree > TreeId::snapshots || mark.tree == TreeId::super_image) return {};
  return mark;
}

constexpr std::uint32_t WritingCosts::* kCosts[] = {&WritingCosts::copied,   &WritingCosts::plugged, &WritingCosts::beside,
                                                   &WritingCosts::threaded, &WritingCosts::in_row,  &WritingCosts::scattered};

std::uint8_t eighths_of_logarithm(std::uint32_t ns) {
  return ns ? static_cast<std::uint8_t>(std::clamp(std::lround(8 * std::log2(ns)), 1L, 255L)) : 0;
}
std::uint32_t from_eighths(std::uint8_t kept) { return kept ? static_cast<std::uint32_t>(std::lround(std::exp2(kept / 8.0))) : 0; }

void put_costs(Writer& out, const WritingCosts& costs) {
  out.skip_to(kCostsAt);
  for (const auto cost : kCosts) out.put(eighths_of_logarithm(costs.*cost));
}
WritingCosts get_costs(Reader& in) {
  WritingCosts costs;
  in.skip_to(kCostsAt);
  for (const auto cost : kCosts) costs.*cost = from_eighths(in.u8());
  return costs;
}

constexpr std::uint64_t LifetimeCounters::* kCounters[] = {
    &LifetimeCounters::user_blocks,  &LifetimeCounters::cleaned_blocks, &LifetimeCounters::node_blocks,
    &LifetimeCounters::chain_blocks, &LifetimeCounters::device_bytes,   &LifetimeCounters::checkpoints,
    &LifetimeCounters::mounts,       &LifetimeCounters::recoveries,     &LifetimeCounters::segments_cleaned,
    &LifetimeCounters::errors};

// --- writing ---------------------------------------------------------------------------------------------------------------
void put_geometry(Writer& out, const Superblock& s) {
  out.put(s.features.compat);
  out.put(s.features.ro_compat);
  out.put(s.features.incompat);
  out.skip_to(kUuidAt);
  out.put_bytes(std::as_bytes(std::span(s.uuid)));
  out.put_text(std::string_view(s.label).substr(0, kLabelBytes - 1));
  out.skip_to(kIdentityAt);
  out.put(s.identity);
  for (const std::uint64_t key : s.hash_key) out.put(key);
  out.skip_to(kMadeAt);
  out.put(static_cast<std::uint64_t>(s.made.seconds));
  out.put(s.made.nanoseconds);
  out.skip_to(kDeviceBlocksAt);
  out.put(s.device_blocks);
  out.put(s.segments);
  out.put(s.first_segment.v);
  out.put(s.segment_blocks);
  out.put(s.clean ? kFlagClean : 0U);
}

void put_checkpoint(Writer& out, const Superblock& s) {
  out.put(s.serial.v);
  out.put(s.epoch);
  out.put(s.sequence);
  out.put(s.lsn.v);
  out.put(s.chain_crc);
  out.put(s.inode_file_level);
  out.skip_to(kChainAt);
  put_run(out, s.chain);
  put_run(out, s.next_run);
  out.skip_to(kClockAt);
  out.put(s.clock);
  out.put(s.clock_unit);
  out.put(s.next_ino);
  out.skip_to(kRefsAt);
  for (const NodeRef* ref : {&s.inode_file, &s.reverse_map, &s.free_map, &s.image}) put_ref(out, *ref);
  out.skip_to(kHeadsAt);
  for (const HeadPlace& head : s.heads) put_run(out, head.rest);
  put_run(out, s.node_head.rest);
  for (const std::uint64_t centre : s.group_centres) out.put(centre);
}

void put_counts(Writer& out, const Superblock& s) {
  for (const std::uint64_t count : {s.live_blocks, s.data_blocks, s.reserved_blocks, s.inodes}) out.put(count);
  for (const auto counter : kCounters) out.put(s.lifetime.*counter);
  put_error(out, s.first_error);
  put_error(out, s.last_error);
  if (s.features.compat & kCompatScrubMark) put_scrub(out, s.scrub);
  if (s.features.compat & kCompatWritingCosts) put_costs(out, s.costs);
  out.skip_to(kAreaAt);
}

void put_area(Writer& out, const SuperblockArea& area) {
  out.put(area.start.v);
  out.put(area.slots);
  out.put(area.slot_blocks);
}

void put_profile(Writer& out, const DeviceProfile& device) {
  out.put(device.erase_blocks);
  out.put(device.streams);
  out.put(static_cast<std::uint8_t>(device.erase_source));
  out.put(static_cast<std::uint8_t>(device.streams_source));
  out.skip_to(kSnapshotsAt);
}

// --- reading ---------------------------------------------------------------------------------------------------------------
void get_geometry(Reader& in, Superblock& s) {
  s.features.compat = in.u64();
  s.features.ro_compat = in.u64();
  s.features.incompat = in.u64();
  in.skip_to(kUuidAt);
  const auto uuid = in.bytes(s.uuid.size());
  std::memcpy(s.uuid.data(), uuid.data(), uuid.size());
  const std::string_view label = in.text(kLabelBytes).substr(0, kLabelBytes - 1);
  s.label = label.substr(0, label.find('\0'));
  s.identity = in.u64();
  for (std::uint64_t& key : s.hash_key) key = in.u64();
  in.skip_to(kMadeAt);
  s.made.seconds = static_cast<std::int64_t>(in.u64());
  s.made.nanoseconds = in.u32();
  in.skip_to(kDeviceBlocksAt);
  s.device_blocks = in.u64();
  s.segments = in.u64();
  s.first_segment = BlockAddr{in.u64()};
  s.segment_blocks = in.u32();
  s.clean = in.u32() & kFlagClean;
}

void get_checkpoint(Reader& in, Superblock& s) {
  s.serial = Serial{in.u64()};
  s.epoch = in.u64();
  s.sequence = in.u64();
  s.lsn = Lsn{in.u64()};
  s.chain_crc = in.u32();
  s.inode_file_level = in.u8();
  in.skip_to(kChainAt);
  s.chain = get_run(in);
  s.next_run = get_run(in);
  in.skip_to(kClockAt);
  s.clock = in.u64();
  s.clock_unit = in.u64();
  s.next_ino = in.u64();
  in.skip_to(kRefsAt);
  for (NodeRef* ref : {&s.inode_file, &s.reverse_map, &s.free_map, &s.image}) *ref = get_ref(in);
  in.skip_to(kHeadsAt);
  for (HeadPlace& head : s.heads) head.rest = get_run(in);
  s.node_head.rest = get_run(in);
  for (std::uint64_t& centre : s.group_centres) centre = in.u64();
}

void get_counts(Reader& in, Superblock& s) {
  for (std::uint64_t* count : {&s.live_blocks, &s.data_blocks, &s.reserved_blocks, &s.inodes}) *count = in.u64();
  for (const auto counter : kCounters) s.lifetime.*counter = in.u64();
  s.first_error = get_error(in);
  s.last_error = get_error(in);
  const ScrubMark mark = get_scrub(in);
  if (s.features.compat & kCompatScrubMark) s.scrub = mark;
  const WritingCosts costs = get_costs(in);
  if (s.features.compat & kCompatWritingCosts) s.costs = costs;
  in.skip_to(kAreaAt);
}

void get_area(Reader& in, Superblock& s) {
  s.area.start = BlockAddr{in.u64()};
  s.area.slots = in.u32();
  s.area.slot_blocks = in.u32();
  if (s.features.incompat & kIncompatSuperblockArea) return;
  s.area = {};
  s.sequence = 0;
}

// What nobody knows is no damage: it is only advice.
Source source_of(std::uint8_t code) { return code <= static_cast<std::uint8_t>(Source::measured) ? Source{code} : Source::unknown; }

void get_profile(Reader& in, Superblock& s) {
  DeviceProfile device;
  device.erase_blocks = in.u32();
  device.streams = in.u16();
  device.erase_source = source_of(in.u8());
  device.streams_source = source_of(in.u8());
  in.skip_to(kSnapshotsAt);
  if (s.features.compat & kCompatDeviceProfile) s.device = device;
}

// --- judging -----------------------------------------------------------------------------------------------------------------
Status check_area(const Superblock& s) {
  const SuperblockArea& area = s.area;
  if (area.slots < kMinSlots || area.slots > kMaxSlots || area.slot_blocks < 1 || area.slot_blocks > kMaxSlotBlocks ||
      area.start.v <= kAnswerBlock || area.start >= s.first_segment || area.blocks() > s.first_segment.v - area.start.v)
    return corrupt("superblock: impossible area of {} slots of {} blocks from block {}", area.slots, area.slot_blocks, area.start);
  return {};
}

Status check_geometry(const Superblock& s) {
  if (s.device_blocks < kMinDeviceBlocks || s.device_blocks > kMaxAddress)
    return corrupt("superblock: impossible device size of {} blocks", s.device_blocks);
  if (s.segment_blocks < kMinSegmentBlocks || s.segment_blocks > kMaxSegmentBlocks ||
      !std::has_single_bit(s.segment_blocks))
    return corrupt("superblock: impossible segment size of {} blocks", s.segment_blocks);
  const std::uint64_t last = s.device_blocks - 1;  // the second copy
  if (!s.first_segment || s.first_segment.v >= last || s.segments < 4 ||
      s.segments > (last - s.first_segment.v) / s.segment_blocks)
    return corrupt("superblock: {} segments from block {} do not fit the device", s.segments, s.first_segment);
  if (s.identity == 0) return corrupt("superblock: no identity");
  if (s.features.incompat & kIncompatSuperblockArea) TRY(check_area(s));
  if (s.made.nanoseconds >= 1'000'000'000) return corrupt("superblock: impossible time of making");
  return {};
}

// A run of blocks inside one segment, or a used-up one, which may point just behind it.
Status check_run(const Superblock& s, const Run& run, const char* what) {
  if (run.blocks == 0) return {};
  const std::uint64_t first = s.first_segment.v;
  const std::uint64_t blocks = s.segments * s.segment_blocks;
  const std::uint64_t at = run.start.v - first;
  if (run.start.v < first || at >= blocks || run.blocks > s.segment_blocks - at % s.segment_blocks)
    return corrupt("superblock: the {} at {}+{} is not inside a segment", what, run.start, run.blocks);
  return {};
}

Status check_ref(const Superblock& s, const NodeRef& ref, const char* what) {
  if (!ref || ref.address < s.first_segment || ref.address >= s.first_segment + s.segments * s.segment_blocks)
    return corrupt("superblock: the {} at block {} is outside the segments", what, ref.address);
  return {};
}

Status check_checkpoint(const Superblock& s, bool is_image) {
  if (!s.serial) return corrupt("superblock: no checkpoint");
  if (s.inode_file_level > kMaxTreeLevel) return corrupt("superblock: .ifile of level {}", s.inode_file_level);
  if (s.clock_unit == 0) return corrupt("superblock: no clock unit");
  if (s.next_ino <= kRootIno.v || s.next_ino > kMostNextIno)
    return corrupt("superblock: impossible next inode number {}", s.next_ino);
  if (s.serial.v > 2 * kMostCount) return corrupt("superblock: impossible number {} of a checkpoint", s.serial);
  if (s.lsn.v > 2 * kMostCount) return corrupt("superblock: impossible number {} of a chunk", s.lsn);
  if (s.clock > 2 * kMostCount) return corrupt("superblock: impossible log clock {}", s.clock);
  TRY(check_ref(s, s.inode_file, "root of .ifile"));
  TRY(check_ref(s, s.reverse_map, "root of .mfile"));
  TRY(check_ref(s, s.free_map, "root of .ffile"));
  if (s.snapshots.root) TRY(check_ref(s, s.snapshots.root, "root of .sfile"));
  if (s.snapshots.level > kMaxTreeLevel) return corrupt("superblock: .sfile of level {}", s.snapshots.level);
  if (!is_image) TRY(check_ref(s, s.image, "superblock image"));
  TRY(check_run(s, s.chain, "chain"));
  TRY(check_run(s, s.next_run, "chain's next run"));
  for (const HeadPlace& head : s.heads) TRY(check_run(s, head.rest, "head of a group"));
  return check_run(s, s.node_head.rest, "head of the nodes");
}

Result<Superblock> decode(std::span<const std::byte> block, bool is_image) {
  if (block.size() < kBlockSize) return Error(Errc::not_varve, "superblock: less than a block");
  block = block.first(kBlockSize);
  Reader in(block);
  if (in.u64() != kSuperMagic) return Error(Errc::not_varve, "no Varve superblock here");
  const std::uint32_t crc = in.u32();
  if (crc_without_field(block, kCrcAt) != crc) return corrupt("superblock: CRC does not match its bytes");
  Superblock super;
  super.version = in.u32();
  if (super.version == 0) return corrupt("superblock: version 0");
  if (super.version > kFormatVersion)
    return Error(Errc::unknown_feature, fmt::format("format version {} is newer than this program's {}: use a newer Varve",
                                                    super.version, kFormatVersion));
  get_geometry(in, super);
  get_checkpoint(in, super);
  get_counts(in, super);
  get_area(in, super);
  get_profile(in, super);
  const SnapshotTables tables = get_tables(in);
  if (super.features.ro_compat & kRoCompatSnapshots) super.snapshots = tables;
  in.skip_to(kEnd);
  INVARIANT(in.ok() && in.position() == kEnd);
  TRY(check_geometry(super));
  TRY(check_checkpoint(super, is_image));
  return super;
}

std::string list_bits(std::uint64_t bits) {
  std::string list;
  for (; bits; bits &= bits - 1) list += fmt::format("{}{}", list.empty() ? "" : ", ", std::countr_zero(bits));
  return list;
}

}  // namespace

void encode_superblock(const Superblock& super, std::span<std::byte> block) {
  block = block.first(kBlockSize);
  Writer out(block);
  out.put(kSuperMagic);
  out.put(std::uint32_t{0});
  out.put(super.version);
  INVARIANT(out.size() == kFeaturesAt);
  put_geometry(out, super);
  INVARIANT(out.size() == kSerialAt);
  put_checkpoint(out, super);
  INVARIANT(out.size() == kCountsAt);
  put_counts(out, super);
  put_area(out, super.area);
  put_profile(out, super.device);
  if (super.features.ro_compat & kRoCompatSnapshots) put_tables(out, super.snapshots);
  out.skip_to(kEnd);
  INVARIANT(out.size() == kEnd);
  out.skip_to(kBlockSize);
  store32(block, kCrcAt, crc32c(block));
}

Result<Superblock> decode_superblock(std::span<const std::byte> block) { return decode(block, false); }

bool may_be_torn(std::span<const std::byte> copy, std::span<const std::byte> good) {
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::ranges::equal(copy.subspan(from, to - from), good.subspan(from, to - from));
  };
  const std::uint32_t crc = Reader(copy.subspan(kCrcAt)).u32();
  if (crc == crc_without_field(copy, kCrcAt)) return false;  // it is as somebody wrote it
  if (!same(0, kCrcAt) || !same(kVersionAt, kFeaturesAt) || !same(kIdentityAt, kDeviceBlocksAt) ||
      !same(kFirstSegmentAt, kFlagsAt) || !same(kAreaAt, kSnapshotsAt) || !same(kSnapshotsEnd, kBlockSize))
    return false;
  return same(0, kDeviceSector) || !same(kCrcAt, kVersionAt);
}

std::uint64_t told_device_blocks(std::span<const std::byte> block) {
  if (Reader(block).u64() != kSuperMagic) return 0;
  const std::uint64_t blocks = Reader(block.subspan(kDeviceBlocksAt)).u64();
  return blocks >= kMinDeviceBlocks && blocks <= kMaxAddress ? blocks : 0;
}

std::uint32_t encode_super_image(const Superblock& super, std::span<std::byte> block, BlockAddr address) {
  Superblock copy = super;
  copy.image = {};
  std::array<std::byte, kBlockSize> bytes;
  encode_superblock(copy, bytes);
  const NodeHeader header{.identity = super.identity, .serial = super.serial, .address = address,
                          .tree = TreeId::super_image, .level = 0, .count = 0, .used = kNodePayloadBytes,
                          .first = {Ino{0}, ItemKind{}, 0}};
  return write_node(block, header, std::span(bytes).first(kNodePayloadBytes));
}

Result<Superblock> decode_super_image(std::span<const std::byte> block) {
  const NodeHeader header = TRY(decode_node_header(block));
  if (header.tree != TreeId::super_image || header.used != kNodePayloadBytes)
    return corrupt("node at block {}: not a superblock image", header.address);
  std::array<std::byte, kBlockSize> bytes{};
  std::memcpy(bytes.data(), block.data() + kNodeHeaderBytes, kNodePayloadBytes);
  Superblock super = TRY(decode(bytes, true));
  if (super.identity != header.identity || super.serial != header.serial)
    return corrupt("superblock image at block {}: disagrees with its node header", header.address);
  super.image = {header.address, block_crc(block), 0};
  return super;
}

void allow_long_headers(Superblock& super, bool allowed) {
  super.features.incompat &= ~kIncompatLongHeaders;
  if (allowed && most_header_blocks(super.segment_blocks) > kMaxChunkHeaderBlocks) super.features.incompat |= kIncompatLongHeaders;
}

Status check_features(const Superblock& super, Intent intent) {
  const std::uint64_t incompat = super.features.incompat & ~kKnownFeatures.incompat;
  if (incompat)
    return Error(Errc::unknown_feature, fmt::format("the filesystem uses unknown incompatible feature bits {}: it cannot "
                                                    "be read by this version, use a newer Varve", list_bits(incompat)));
  const std::uint64_t ro_compat = super.features.ro_compat & ~kKnownFeatures.ro_compat;
  if (ro_compat && intent == Intent::write)
    return Error(Errc::unknown_feature, fmt::format("the filesystem uses unknown feature bits {} that forbid writing: mount "
                                                    "it read-only or use a newer Varve", list_bits(ro_compat)));
  return {};
}

std::uint64_t segments_in(std::uint64_t device_blocks, BlockAddr first_segment, std::uint32_t segment_blocks) {
  return device_blocks <= first_segment.v + 1 ? 0 : (device_blocks - 1 - first_segment.v) / segment_blocks;
}

bool same_but_for_sequence(const Superblock& a, const Superblock& b) {
  Superblock copy = a;
  copy.sequence = b.sequence;
  return copy == b;
}

WritingCosts as_kept(const WritingCosts& costs) {
  WritingCosts kept;
  for (const auto cost : kCosts) kept.*cost = from_eighths(eighths_of_logarithm(costs.*cost));
  return kept;
}

}  // namespace varve::format
