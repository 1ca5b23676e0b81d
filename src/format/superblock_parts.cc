#include "format/superblock_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/invariant.h"
#include "format/superblock_layout.h"

namespace varve::format {

using namespace superblock_layout;

namespace {

constexpr std::uint32_t kFlagClean = 1;

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

void put_ref(Writer& out, const NodeRef& ref) {
  out.put(ref.address.v);
  out.put(ref.blocks);
  out.put(ref.crc);
  out.put(std::uint32_t{0});
}
NodeRef get_ref(Reader& in) {
  NodeRef ref;
  ref.address = BlockAddr{in.u64()};
  ref.blocks = in.u64();
  ref.crc = in.u32();
  in.u32();
  return ref;
}

// What nobody knows is no damage: it is only advice.
Source source_of(std::uint8_t code) { return code <= static_cast<std::uint8_t>(Source::measured) ? Source{code} : Source::unknown; }

}  // namespace

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
  INVARIANT(out.size() == kStreamsAt);
  out.put(device.streams);
  out.put(static_cast<std::uint8_t>(device.erase_source));
  out.put(static_cast<std::uint8_t>(device.streams_source));
  out.skip_to(kSnapshotsAt);
}

void put_tables(Writer& out, const SnapshotTables& t) {
  put_ref(out, t.root);
  out.put(std::uint64_t{t.level});  // one byte, and zeros
  for (const std::uint64_t count : {t.snapshots, t.held_blocks, t.held_data, t.shared_nodes, t.places}) out.put(count);
}

void put_tails(Writer& out, const TailLimits& limits) {
  out.put(limits.kept);
  out.put(limits.logged);
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

void get_profile(Reader& in, Superblock& s) {
  DeviceProfile device;
  device.erase_blocks = in.u32();
  device.streams = in.u16();
  device.erase_source = source_of(in.u8());
  device.streams_source = source_of(in.u8());
  in.skip_to(kSnapshotsAt);
  if (s.features.compat & kCompatDeviceProfile) s.device = device;
}

void get_tables(Reader& in, Superblock& s) {
  SnapshotTables t;
  t.root = get_ref(in);
  t.level = in.u8();
  in.skip_to(in.position() + 7);
  for (std::uint64_t* count : {&t.snapshots, &t.held_blocks, &t.held_data, &t.shared_nodes, &t.places}) *count = in.u64();
  if (s.features.ro_compat & kRoCompatSnapshots) s.snapshots = t;
}

void get_tails(Reader& in, Superblock& s) {
  in.skip_to(kTailsAt);
  TailLimits limits;
  limits.kept = in.u64();
  limits.logged = in.u64();
  if (s.features.incompat & kIncompatTails) s.tails = limits;
}

WritingCosts as_kept(const WritingCosts& costs) {
  WritingCosts kept;
  for (const auto cost : kCosts) kept.*cost = from_eighths(eighths_of_logarithm(costs.*cost));
  return kept;
}

}  // namespace varve::format
