#include "format/make.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>

#include "base/invariant.h"
#include "format/fields.h"
#include "format/lease.h"
#include "format/map_record.h"
#include "format/map_writer.h"

namespace varve::format {

namespace {

constexpr std::uint64_t kRoomyDeviceBlocks = 16384;  // 64 MiB
constexpr std::uint64_t kUsualUnit = 1024;           // 4 MiB: of most cards and sticks
constexpr std::uint64_t kLeastUnit = 16, kMostUnit = 1U << 18;  // 64 KiB, 1 GiB
constexpr std::uint64_t kLargeUnit = 4096;           // 16 MiB: too much for superblocks alone
constexpr std::uint64_t kLeastArea = 256;            // blocks
constexpr std::uint64_t kUsualSlots = 256;           // as many as a mount reads at once on slow devices
constexpr std::uint64_t kPageBlocks = 4;             // 16 KiB: of most cards, so that no two superblocks share one
constexpr std::uint64_t kFewestUnits = 64;           // fewer are not worth the room in front of the first one
constexpr std::uint64_t kEnoughSegments = 192;       // of a unit each
constexpr std::uint32_t kMaxAutoSegmentBlocks = 2048;
constexpr std::uint64_t kWantedSegments = 1024;
constexpr std::uint64_t kClockUnits = 1ULL << 18;

// Nodes per level, leaves first, that a map needs for the records first…last.
std::vector<std::uint64_t> nodes_for(const MapShape& shape, std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> counts;
  first /= shape.per_leaf();
  last /= shape.per_leaf();
  for (unsigned i = 0; i <= shape.root_level(); ++i, first /= kMapFanout, last /= kMapFanout)
    counts.push_back(last - first + 1);
  return counts;
}

// The owner of each block of segment 0, in the order in which the nodes are written.
std::vector<ReverseEntry> plan_nodes(const Superblock& super) {
  const MapShape reverse = reverse_map_shape(super.device_blocks);
  const MapShape free = free_map_shape(super.segments, super.segment_blocks);
  std::vector<ReverseEntry> plan;
  for (std::size_t size = 0; plan.empty() || plan.size() != size;) {
    size = std::max<std::size_t>(plan.size(), 1);
    plan.clear();
    auto add = [&](TreeId tree, const std::vector<std::uint64_t>& counts) {
      for (std::size_t level = 0; level < counts.size(); ++level) {
        ReverseEntry entry;
        entry.owner = Owner::node;
        entry.tree = tree;
        entry.level = static_cast<std::uint8_t>(level);
        plan.insert(plan.end(), counts[level], entry);
      }
    };
    add(TreeId::inode_file, {1});
    add(TreeId::reverse_map, nodes_for(reverse, super.first_segment.v, super.first_segment.v + size - 1));
    add(TreeId::free_map, nodes_for(free, 0, 0));
    plan.emplace_back().owner = Owner::super_image;
  }
  return plan;
}

MapRecords reverse_records(const Superblock& super, const std::vector<ReverseEntry>& plan) {
  MapRecords records;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto& bytes = records[super.first_segment.v + i];
    bytes.resize(kReverseEntryBytes);
    encode_reverse_entry(plan[i], bytes);
  }
  return records;
}

MapRecords free_records(const Superblock& super, std::uint64_t live) {
  std::vector<std::byte> bytes(segment_record_bytes(super.segment_blocks));
  SegmentRecord record;
  record.group = kGroupNodes;
  record.live = static_cast<std::uint32_t>(live);
  encode_segment_record(record, bytes);
  for (std::uint64_t i = 0; i < live; ++i)
    bytes[kSegmentRecordHeaderBytes + i / 8] |= std::byte{static_cast<std::uint8_t>(1U << (i % 8))};
  return {{0, bytes}};
}

MadeNode make_root_directory(const Superblock& super, const MakeParameters& parameters, std::uint32_t generation) {
  Attributes root;
  root.mode = S_IFDIR | (parameters.mode & 07777);
  root.uid = parameters.uid;
  root.gid = parameters.gid;
  root.nlink = 2;
  root.generation = generation;
  root.parent = kRootIno;
  root.atime = root.mtime = root.ctime = root.btime = parameters.now;
  Bytes value;
  encode_attributes(root, value);
  LeafBuilder leaf;
  const bool fits = leaf.add({kRootIno, ItemKind::attributes, 0}, value);
  INVARIANT(fits);
  (void)fits;
  MadeNode node{super.first_segment, {}};
  leaf.finish(node.bytes, super.identity, super.serial, node.address);
  return node;
}

// 0: none that the layout should go by.
std::uint64_t unit_of(std::uint64_t device_blocks, const EraseUnit& unit) {
  const std::uint64_t blocks = unit.blocks ? unit.blocks : kUsualUnit;
  return device_blocks / blocks >= kFewestUnits ? blocks : 0;
}

Status check_parameters(const MakeParameters& p) {
  auto invalid = [](std::string why) { return Error(Errc::invalid, std::move(why)); };
  if (p.device_blocks < kMinDeviceBlocks)
    return invalid(fmt::format("{} KiB are too small: Varve needs at least 8 MiB", p.device_blocks * kBlockSize / 1024));
  if (p.device_blocks > kMaxAddress) return invalid("the device is bigger than 1 EiB");
  TRY(check_label(p.label));
  if (p.erase_unit.blocks && (p.erase_unit.blocks < kLeastUnit || p.erase_unit.blocks > kMostUnit))
    return invalid("the erase unit must be from 64 KiB to 1 GiB");
  if (p.segment_blocks == 0) return {};
  if (p.segment_blocks < kMinSegmentBlocks || p.segment_blocks > kMaxSegmentBlocks ||
      !std::has_single_bit(p.segment_blocks))
    return invalid("the segment size must be a power of two from 256 KiB to 64 MiB");
  return {};
}

Uuid random_uuid(Random& random) {
  Uuid uuid;
  for (std::size_t i = 0; i < uuid.size(); i += 8) {
    const std::uint64_t word = random.next();
    for (std::size_t j = 0; j < 8; ++j) uuid[i + j] = static_cast<std::uint8_t>(word >> (8 * j));
  }
  uuid[6] = (uuid[6] & 0x0F) | 0x40;  // RFC 4122: version 4, variant 1
  uuid[8] = (uuid[8] & 0x3F) | 0x80;
  return uuid;
}

std::uint64_t random_nonzero(Random& random) {
  for (;;)
    if (const std::uint64_t value = random.next()) return value;
}

DeviceProfile profile_of(const MakeParameters& p) {
  DeviceProfile profile{.erase_blocks = static_cast<std::uint32_t>(unit_of(p.device_blocks, p.erase_unit)), .streams = p.streams,
                        .erase_source = p.erase_source, .streams_source = p.streams_source};
  if (profile.erase_blocks == 0) profile.erase_source = Source::unknown;
  else if (p.erase_unit.blocks == 0) profile.erase_source = Source::assumed;
  return profile;
}

Result<Superblock> make_superblock(const MakeParameters& p, Random& random) {
  TRY(check_parameters(p));
  Superblock s;
  s.uuid = p.uuid == Uuid{} ? random_uuid(random) : p.uuid;
  s.label = p.label;
  s.identity = random_nonzero(random);
  for (std::uint64_t& key : s.hash_key) key = random.next();
  s.epoch = random_nonzero(random);
  s.made = p.now;
  s.device_blocks = p.device_blocks;
  s.segment_blocks = p.segment_blocks ? p.segment_blocks : auto_segment_blocks(p.device_blocks, p.erase_unit);
  s.first_segment = first_segment_of(p.device_blocks, s.segment_blocks, p.erase_unit, !p.superblocks_in_place);
  s.device = profile_of(p);
  if (s.device != DeviceProfile{}) s.features.compat |= kCompatDeviceProfile;
  s.costs = as_kept(p.costs);
  if (s.costs != WritingCosts{}) s.features.compat |= kCompatWritingCosts;
  s.tails = p.tails;
  if (s.tails.kept) s.features.incompat |= kIncompatTails;
  if (!p.superblocks_in_place) {
    s.features.incompat |= kIncompatSuperblockArea;
    s.area = area_of(p.device_blocks, p.erase_unit);
  }
  s.segments = segments_in(s.device_blocks, s.first_segment, s.segment_blocks);
  if (s.segments < kFewestSegments)
    return Error(Errc::invalid, fmt::format("only {} segments of {} KiB fit, at least {} are needed: choose smaller ones",
                                            s.segments, s.segment_blocks * (kBlockSize / 1024), kFewestSegments));
  s.serial = Serial{1};
  s.chain = {s.first_segment + s.segment_blocks, s.segment_blocks};
  s.next_run = {s.first_segment + 2ULL * s.segment_blocks, s.segment_blocks};
  s.clock_unit = clock_unit_of(s.device_blocks);
  s.next_ino = kRootIno.v + 1;
  s.inodes = 1;
  s.clean = true;
  return s;
}

}  // namespace

std::uint32_t auto_segment_blocks(std::uint64_t device_blocks, const EraseUnit& unit) {
  const auto segments_of = [&](std::uint64_t blocks) {
    return (device_blocks - first_segment_of(device_blocks, static_cast<std::uint32_t>(blocks), unit).v - 1) / blocks;
  };
  std::uint64_t blocks = kMaxAutoSegmentBlocks;
  while (blocks > kMinSegmentBlocks && segments_of(blocks) < kWantedSegments) blocks /= 2;
  const std::uint64_t whole = std::min<std::uint64_t>(std::bit_ceil(unit_of(device_blocks, unit)), kMaxSegmentBlocks);
  while (blocks < whole && segments_of(2 * blocks) >= kEnoughSegments) blocks *= 2;
  return static_cast<std::uint32_t>(blocks);
}

SuperblockArea area_of(std::uint64_t device_blocks, const EraseUnit& unit) {
  constexpr std::uint64_t kLeast = kAnswerBlock + 1;
  const std::uint64_t whole = unit_of(device_blocks, unit);
  const auto of = [](std::uint64_t start, std::uint64_t blocks, std::uint64_t slot) {
    return SuperblockArea{BlockAddr{start}, static_cast<std::uint32_t>(blocks / slot), static_cast<std::uint32_t>(slot)};
  };
  if (whole > kLargeUnit) return of(kLeastArea, kUsualSlots * kPageBlocks, kPageBlocks);
  if (whole) {
    const std::uint64_t slot = std::clamp<std::uint64_t>(std::bit_floor(whole / kUsualSlots), kPageBlocks, kMaxSlotBlocks);
    return of(divide_up(unit.before + kLeast, whole) * whole - unit.before, divide_up(kLeastArea, whole) * whole, slot);
  }
  return device_blocks >= kRoomyDeviceBlocks ? of(64, kLeastArea - 64, kPageBlocks) : of(kLeast, kMinSlots, 1);
}

BlockAddr first_segment_of(std::uint64_t device_blocks, std::uint32_t segment_blocks, const EraseUnit& unit, bool area) {
  const std::uint64_t whole = unit_of(device_blocks, unit);
  std::uint64_t least = device_blocks >= kRoomyDeviceBlocks ? kLeastArea : 8U;
  if (area) {
    const SuperblockArea superblocks = area_of(device_blocks, unit);
    least = std::max(least, superblocks.start.v + superblocks.blocks());
  }
  if (!whole) return BlockAddr{least};
  const std::uint64_t both = std::has_single_bit(whole) ? std::max<std::uint64_t>(whole, segment_blocks) : whole;
  return BlockAddr{divide_up(unit.before + least, both) * both - unit.before};
}

std::vector<MadeNode> superblocks_of(const EmptyFilesystem& made) {
  std::vector<MadeNode> blocks;
  Superblock super = made.super;
  const auto put = [&](BlockAddr address) { encode_superblock(super, blocks.emplace_back(MadeNode{address, {}}).bytes); };
  put(BlockAddr{0});
  put(BlockAddr{super.device_blocks - 1});
  while (super.sequence < super.area.slots) {
    ++super.sequence;
    put(super.area.place_of(super.sequence));
  }
  return blocks;
}

std::uint64_t clock_unit_of(std::uint64_t device_blocks) {
  return std::max<std::uint64_t>(1, device_blocks / kClockUnits);
}

Result<EmptyFilesystem> make_filesystem(const MakeParameters& parameters, Random& random) {
  EmptyFilesystem made;
  made.super = TRY(make_superblock(parameters, random));
  Superblock& s = made.super;
  const std::vector<ReverseEntry> plan = plan_nodes(s);
  s.live_blocks = plan.size();
  s.node_head.rest = {s.first_segment + plan.size(), static_cast<std::uint32_t>(s.segment_blocks - plan.size())};
  s.lifetime.node_blocks = plan.size();
  s.lifetime.device_bytes = (plan.size() + 2 + s.area.blocks()) * kBlockSize;
  s.lifetime.checkpoints = 1;

  made.nodes.push_back(make_root_directory(s, parameters, static_cast<std::uint32_t>(random_nonzero(random))));
  s.inode_file = {s.first_segment, block_crc(made.nodes.front().bytes), 0};
  const NodeIdentity identity{s.identity, s.serial};
  auto next = [&] { return s.first_segment + made.nodes.size(); };
  s.reverse_map = write_map(TreeId::reverse_map, reverse_map_shape(s.device_blocks), reverse_records(s, plan), identity,
                            next(), made.nodes);
  s.free_map = write_map(TreeId::free_map, free_map_shape(s.segments, s.segment_blocks), free_records(s, plan.size()),
                         identity, next(), made.nodes);
  MadeNode& image = made.nodes.emplace_back(MadeNode{next(), {}});
  const std::uint32_t crc = encode_super_image(s, image.bytes, image.address);
  s.image = {image.address, crc, 0};
  INVARIANT(made.nodes.size() == plan.size());
  return made;
}

}  // namespace varve::format
