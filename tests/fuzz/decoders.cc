#include "fuzz/decoders.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/crc32c.h"
#include "format/map_record.h"
#include "format/record.h"
#include "format/samples.h"
#include "format/snapshot.h"
#include "format/superblock.h"

namespace varve::fuzz {

using namespace format;

namespace {

using Block = std::array<std::byte, kBlockSize>;

void put32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

void seal(std::span<std::byte> bytes, std::size_t crc_at) {
  put32(bytes, crc_at, 0);
  put32(bytes, crc_at, crc32c(bytes));
}

Block block_of(Input input) {
  Block block{};
  std::ranges::copy(input.first(std::min(input.size(), block.size())), block.begin());
  return block;
}

// What has been decoded and is encoded again says the same.
void check_records(Input bytes) {
  Bytes again;
  const Status all = decode_records(bytes, [&](const Record& record) -> Status {
    encode_record(record, again);
    return {};
  });
  Bytes third;
  const Status same = decode_records(again, [&](const Record& record) -> Status {
    encode_record(record, third);
    return {};
  });
  require(same.ok() && third == again, "a record that comes back differently");
  (void)all;
}

template <class Value, class Decode, class Encode>
void round_trip(Input bytes, Decode decode, Encode encode, const char* what) {
  const auto value = decode(bytes);
  if (!value.ok()) return;
  Bytes again;
  encode(*value, again);
  const auto back = decode(std::span<const std::byte>(again));
  require(back.ok() && *back == *value, what);
}

// In as many pieces as it takes.
void check_dead(const DeadPiece& piece) {
  std::vector<DeadRun> back;
  DeadPieceBuilder builder(kMostDeadPieceBytes);
  const auto read_back = [&] {
    const auto again = decode_dead(builder.finish(piece.death));
    require(again.ok() && again->death == piece.death, "a list of dead blocks that does not come back");
    back.insert(back.end(), again->runs.begin(), again->runs.end());
  };
  for (const DeadRun& run : piece.runs) {
    if (builder.add(run)) continue;
    read_back();
    require(builder.add(run), "a run that is longer than a piece");
  }
  read_back();
  require(back == piece.runs, "a list of dead blocks that comes back differently");
}

void check_tail(Input value) {
  const auto tail = decode_tail(value);
  if (!tail.ok()) return;
  Bytes again;
  encode_tail(*tail, again);
  require(std::ranges::equal(again, value), "a tail that comes back differently");
  require(!decode_extent(value).ok(), "a tail that is an extent, too");
}

void check_item(ItemKind kind, Input value) {
  switch (kind) {
    case ItemKind::extent:
      check_tail(value);
      round_trip<Extent>(value, decode_extent, encode_extent, "an extent that comes back differently");
      require(decode_extent(value).ok() == extent_length(value).ok(), "two decoders of extents that disagree");
      require((decode_extent(value).ok() || decode_tail(value).ok()) == owned_blocks(value).ok(), "blocks of what does not decode");
      break;
    case ItemKind::dirent:
      if (const auto entry = decode_dirent(value); entry.ok()) {
        Bytes again;
        encode_dirent(*entry, again);
        const auto back = decode_dirent(again);
        require(back.ok() && back->ino == entry->ino && back->name == entry->name && back->type == entry->type,
                "an entry that comes back differently");
      }
      break;
    case ItemKind::name_hash:
      round_trip<std::vector<std::uint64_t>>(
          value, decode_cookies, [](const auto& cookies, Bytes& out) { encode_cookies(cookies, out); },
          "cookies that come back differently");
      break;
    case ItemKind::xattr:
      round_trip<std::vector<Xattr>>(
          value, decode_xattrs, [](const auto& xattrs, Bytes& out) { encode_xattrs(xattrs, out); },
          "attributes that come back differently");
      break;
    case ItemKind::attributes:
      round_trip<Attributes>(value, decode_attributes, encode_attributes, "attributes that come back differently");
      break;
    case ItemKind::snapshot:
      round_trip<SnapshotItem>(
          value, [](Input bytes) { return decode_snapshot(snapshot_key(Serial{9}), bytes); }, encode_snapshot,
          "a snapshot that comes back differently");
      break;
    case ItemKind::dead:
      if (const auto piece = decode_dead(value); piece.ok()) check_dead(*piece);
      break;
    case ItemKind::place:
      round_trip<PlaceItem>(value, decode_place, encode_place, "a place that comes back differently");
      break;
    case ItemKind::name:
      round_trip<BlockAddr>(value, decode_name, encode_name, "a name that comes back differently");
      break;
    default:
      break;
  }
}

std::vector<std::byte> vector_of(Input bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::byte> with_kind(ItemKind kind, const Bytes& value) {
  std::vector<std::byte> seed(1 + value.size());
  seed[0] = static_cast<std::byte>(kind);
  std::ranges::copy(value, seed.begin() + 1);
  return seed;
}

Extent some_extent() {
  Extent extent;
  extent.address = BlockAddr{4711};
  extent.length = 3;
  extent.crcs = {1, 2, 3};
  return extent;
}

Superblock some_superblock() {
  Superblock s = test::sample_superblock();
  s.features.compat = kCompatScrubMark;
  s.scrub.started = 1;
  return s;
}

}  // namespace

void superblock(Input input) {
  Block block = block_of(input);
  seal(block, 8);
  for (const bool is_image : {false, true}) {
    if (is_image) seal(block, 4);
    const auto super = is_image ? decode_super_image(block) : decode_superblock(block);
    if (!super.ok() || is_image) continue;
    Block again;
    encode_superblock(*super, again);
    const auto back = decode_superblock(again);
    require(back.ok() && *back == *super, "a superblock that comes back differently");
  }
}

void chunk(Input input) {
  std::vector<std::byte> bytes = vector_of(input);
  bytes.resize(std::max<std::size_t>(round_up(bytes.size(), kBlockSize), kBlockSize));
  const auto header = peek_chunk(bytes);
  if (!header.ok()) return;
  const std::size_t size = header->header_blocks * kBlockSize;
  if (bytes.size() < size) bytes.resize(size);
  seal(std::span(bytes).first(size), 4);
  const auto decoded = decode_chunk(bytes);
  if (!decoded.ok()) return;
  check_records(decoded->records);
  std::vector<std::byte> again(chunk_header_blocks(decoded->records.size()) * kBlockSize);
  ChunkHeader copy = decoded->header;
  copy.header_blocks = chunk_header_blocks(decoded->records.size());
  encode_chunk(copy, decoded->records, again);
  if (copy.header_blocks == decoded->header.header_blocks)
    require(decode_chunk(again).ok() && decode_chunk(again)->header == copy, "a chunk that comes back differently");
}

void records(Input input) { check_records(input); }

void node(Input input) {
  Block block = block_of(input);
  seal(block, 4);
  const auto header = decode_node_header(block);
  if (!header.ok()) return;
  const NodeExpectation expected{header->identity, header->address, block_crc(block), header->tree, header->level};
  const auto checked = check_node(block, expected);
  require(checked.ok() || checked.error().is(Errc::corrupt), "an error that is not damage");
  if (!checked.ok()) return;
  if (header->tree == TreeId::inode_file && header->level == 0) {
    const auto items = decode_items(block, *header);
    if (!items.ok()) return;
    require(!items->empty() || header->count == 0, "items that are not there");
    for (std::size_t i = 0; i < items->size(); ++i) {
      require(i == 0 || (*items)[i - 1].key < (*items)[i].key, "keys out of order");
      check_item((*items)[i].key.kind, (*items)[i].value);
    }
  } else if (header->tree == TreeId::inode_file) {
    const auto children = decode_children(block, *header);
    if (!children.ok()) return;
    require(!children->empty(), "an interior node without children");
    for (std::size_t i = 1; i < children->size(); ++i)
      require((*children)[i - 1].first < (*children)[i].first, "keys of children out of order");
  } else if (header->level > 0) {
    const auto slots = decode_map_slots(block, *header);
    require(!slots.ok() || slots->size() == kMapFanout, "not as many slots as a map's node has");
  } else {
    require(map_leaf_records(block).size() == kNodePayloadBytes, "a leaf of another size");
  }
}

void item(Input input) {
  if (input.empty()) return;
  check_item(static_cast<ItemKind>(input[0]), input.subspan(1));
}

void map_record(Input input) {
  std::array<std::byte, kSegmentRecordHeaderBytes> bytes{};
  std::ranges::copy(input.first(std::min(input.size(), bytes.size())), bytes.begin());
  if (const auto entry = decode_reverse_entry(std::span(bytes).first(kReverseEntryBytes)); entry.ok()) {
    std::array<std::byte, kReverseEntryBytes> again{};
    encode_reverse_entry(*entry, again);
    const auto back = decode_reverse_entry(again);
    require(back.ok() && *back == *entry, "an owner that comes back differently");
  }
  if (const auto record = decode_segment_record(bytes); record.ok()) {
    std::array<std::byte, kSegmentRecordHeaderBytes> again{};
    encode_segment_record(*record, again);
    const auto back = decode_segment_record(again);
    require(back.ok() && *back == *record, "a segment that comes back differently");
  }
}

Seeds superblock_seeds() {
  Block block{};
  encode_superblock(some_superblock(), block);
  Block image{};
  encode_super_image(some_superblock(), image, BlockAddr{303});
  return {vector_of(std::span(block).first(1024)), vector_of(std::span(image).first(1100))};
}

Seeds record_seeds() {
  Seeds seeds;
  Bytes all;
  const std::vector<std::byte> value(20, std::byte{7});
  const Record kinds[] = {SetAttributes{Ino{5}, test::sample_attributes()},
                          FreeInode{Ino{5}},
                          SetOrphan{Ino{5}},
                          ClearOrphan{Ino{5}},
                          SetDirent{Ino{1}, 3, {Ino{5}, 8, "name"}},
                          DeleteDirent{Ino{1}, 3, "name"},
                          SetXattr{Ino{5}, "user.x", value},
                          DeleteXattr{Ino{5}, "user.x"},
                          SetSymlink{Ino{5}, "target"},
                          MapBlocks{Ino{5}, 10, BlockAddr{500}, 1, 2, false, {1, 2, 3}},
                          ClearRange{Ino{5}, 3, 9, true},
                          SetTail{Ino{5}, 3, value}};
  for (const Record& record : kinds) {
    Bytes one;
    encode_record(record, one);
    encode_record(record, all);
    seeds.push_back(one);
  }
  seeds.push_back(all);
  return seeds;
}

Seeds chunk_seeds() {
  const Bytes records = record_seeds().back();
  ChunkHeader header;
  header.identity = 1;
  header.epoch = 2;
  header.lsn = Lsn{3};
  header.header_blocks = chunk_header_blocks(records.size());
  header.record_bytes = static_cast<std::uint32_t>(records.size());
  header.address = BlockAddr{320};
  header.run = {BlockAddr{320}, 64};
  header.next_run = {BlockAddr{384}, 64};
  header.next_ino = 20;
  std::vector<std::byte> bytes(header.header_blocks * kBlockSize);
  encode_chunk(header, records, bytes);
  bytes.resize(kChunkHeaderBytes + records.size());
  return {bytes};
}

namespace {

Seeds inode_item_seeds() {
  Seeds seeds;
  Bytes value;
  const auto add = [&](ItemKind kind) {
    seeds.push_back(with_kind(kind, value));
    value.clear();
  };
  encode_extent(some_extent(), value), add(ItemKind::extent);
  Extent unwritten;
  unwritten.unwritten = true;
  unwritten.length = 1000;
  encode_extent(unwritten, value), add(ItemKind::extent);
  encode_tail(Bytes(20, std::byte{7}), value), add(ItemKind::extent);
  encode_dirent({Ino{5}, 8, "name"}, value), add(ItemKind::dirent);
  encode_cookies(std::vector<std::uint64_t>{3, 9}, value), add(ItemKind::name_hash);
  encode_xattrs(std::vector<Xattr>{{"user.a", {std::byte{1}}}, {"user.b", {}}}, value), add(ItemKind::xattr);
  encode_attributes(test::sample_attributes(), value), add(ItemKind::attributes);
  return seeds;
}

// Of `.sfile`, which no node of the inode file has.
Seeds table_seeds() {
  Seeds seeds;
  Bytes value;
  const auto add = [&](ItemKind kind) {
    seeds.push_back(with_kind(kind, value));
    value.clear();
  };
  SnapshotItem snapshot;
  snapshot.serial = Serial{9};
  snapshot.name = "before";
  snapshot.clock = 77;
  snapshot.inode_file = {BlockAddr{4711}, 0x12345678, 1000};
  snapshot.inode_file_level = 2;
  snapshot.next_piece = 3;
  snapshot.dead = 12;
  snapshot.alone = 5;
  encode_snapshot(snapshot, value), add(ItemKind::snapshot);
  DeadPieceBuilder dead;
  (void)dead.add({BlockAddr{300}, 20, {.when = 5}, 5, 17});
  (void)dead.add({BlockAddr{200}, 1, {.of_node = true, .when = 8}});
  (void)dead.add({BlockAddr{1ULL << 40}, 1, {.ancient = true, .when = 9}, 9});
  value = dead.finish(Serial{11}), add(ItemKind::dead);
  encode_place({BlockAddr{900}, {.of_node = true, .when = 8}}, value), add(ItemKind::place);
  encode_name(BlockAddr{800}, value), add(ItemKind::name);
  return seeds;
}

}  // namespace

Seeds item_seeds() {
  Seeds seeds = inode_item_seeds();
  for (auto& seed : table_seeds()) seeds.push_back(std::move(seed));
  return seeds;
}

Seeds node_seeds() {
  Seeds seeds;
  Block block{};
  LeafBuilder leaf;
  std::uint64_t ino = 5;
  for (const auto& seed : inode_item_seeds())
    leaf.add({Ino{ino++}, static_cast<ItemKind>(seed[0]), 0}, std::span(seed).subspan(1));
  leaf.finish(block, 1, Serial{2}, BlockAddr{300});
  seeds.push_back(vector_of(std::span(block).first(400)));
  LeafBuilder tables(TreeId::snapshots);
  for (const auto& seed : table_seeds()) tables.add({Ino{ino++}, static_cast<ItemKind>(seed[0]), 0}, std::span(seed).subspan(1));
  block = {};
  tables.finish(block, 1, Serial{2}, BlockAddr{304});
  seeds.push_back(vector_of(std::span(block).first(400)));
  block = {};
  InteriorBuilder interior;
  interior.add({{Ino{1}, ItemKind::extent, 0}, {BlockAddr{300}, 1, 2}});
  interior.add({{Ino{9}, ItemKind::dirent, 7}, {BlockAddr{301}, 1, 0}});
  block = {};
  interior.finish(block, 1, 1, Serial{2}, BlockAddr{302});
  seeds.push_back(vector_of(std::span(block).first(128)));
  block = {};
  const NodeRef slots[] = {{}, {BlockAddr{300}, 5, 0}};
  encode_map_slots(block, slots, TreeId::reverse_map, 1, 0, 1, Serial{2}, BlockAddr{303});
  seeds.push_back(vector_of(std::span(block).first(128)));
  return seeds;
}

Seeds map_record_seeds() {
  Seeds seeds;
  std::vector<std::byte> bytes(kSegmentRecordHeaderBytes);
  encode_reverse_entry({Owner::file_block, 1, {}, 0, Ino{5}, 6, 7, 8}, std::span(bytes).first(kReverseEntryBytes));
  seeds.push_back(bytes);
  bytes.assign(kSegmentRecordHeaderBytes, std::byte{0});
  encode_segment_record({1, 0, 5, 6, 7, 8}, bytes);
  seeds.push_back(bytes);
  return seeds;
}

}  // namespace varve::fuzz
