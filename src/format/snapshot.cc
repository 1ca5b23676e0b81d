#include "format/snapshot.h"

#include <algorithm>
#include <ctime>

#include "base/invariant.h"
#include "base/utf8.h"
#include "format/append.h"
#include "format/codec.h"
#include "format/fields.h"
#include "format/varint.h"

namespace varve::format {

namespace {

// Above all addresses and below nothing else: lists come last, and the newest at the very end.
constexpr std::uint64_t kListMark = 1ULL << 63;
constexpr std::uint8_t kDeleting = 1;
// In the number of the next piece, since a reader from before keeps that as it is, and takes the snapshot for one that was asked for.
constexpr std::uint64_t kAutomatic = 1ULL << 62;
constexpr std::uint8_t kOfNode = 1, kAncient = 2;
constexpr std::string_view kPassing = "now (varve ";

void append_difference(Bytes& out, std::uint64_t difference) {  // modulo 2^64
  append_signed(out, static_cast<std::int64_t>(difference));
}

std::uint8_t flags_of(const Birth& birth) {
  return static_cast<std::uint8_t>((birth.of_node ? kOfNode : 0) | (birth.ancient ? kAncient : 0));
}

Status check_birth(const Birth& birth, const char* what) {
  const std::uint64_t most = birth.of_node ? 2 * kMostCount : ~0U;
  if (birth.when > most || (birth.of_node && birth.ancient)) return corrupt("{}: impossible birth {}", what, birth.when);
  return {};
}

Status check_possible_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return Error(Errc::invalid, "the name of a snapshot has 1 to 255 bytes");
  if (name == "." || name == "..") return Error(Errc::invalid, fmt::format("'{}' is no name for a snapshot", name));
  const auto is_bad = [](char c) { return c == '/' || c == ',' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(name, is_bad))
    return Error(Errc::invalid, "the name of a snapshot has neither '/' nor ',' nor control characters");
  return {};
}

}  // namespace

Status check_snapshot_name(std::string_view name) {
  TRY(check_possible_name(name));
  // Tools name snapshots in JSON, which has no other text.
  if (name.starts_with(kAutomaticPrefix))
    return Error(Errc::invalid, fmt::format("'{}': names that begin with '{}' are of snapshots that are made by themselves: give another",
                                            name, kAutomaticPrefix));
  if (is_passing_name(name))
    return Error(Errc::invalid, fmt::format("'{}': names like this are of snapshots that tools make for as long as they run, and that the "
                                            "next mount deletes: give another", name));
  if (!is_printable(name)) return Error(Errc::invalid, "the name of a snapshot is UTF-8 without control characters");
  return {};
}

// --- snapshot -------------------------------------------------------------------------------------------------------------------

Key snapshot_key(Serial serial) { return {Ino{0}, ItemKind::snapshot, serial.v}; }

std::string automatic_name(const Timestamp& made) {
  const auto time = static_cast<std::time_t>(made.seconds);
  std::tm parts{};
  char text[64] = "";
  if (!::gmtime_r(&time, &parts) || !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
    return fmt::format("{}{}", kAutomaticPrefix, made.seconds);
  return fmt::format("{}{}", kAutomaticPrefix, text);
}

// By a number of its own, too: process numbers come again, and containers have the same.
std::string passing_name(std::uint32_t process, std::uint32_t random) { return fmt::format("{}{}-{:08x})", kPassing, process, random); }

bool is_passing_name(std::string_view name) {
  constexpr std::string_view kDecimal = "0123456789", kHexadecimal = "0123456789abcdef";
  if (!name.starts_with(kPassing)) return false;
  name.remove_prefix(kPassing.size());
  const std::size_t digits = std::min(name.find_first_not_of(kDecimal), name.size());
  name.remove_prefix(digits);
  return digits > 0 && name.size() == 10 && name.front() == '-' && name.find_first_not_of(kHexadecimal, 1) == 9 && name.back() == ')';
}

void encode_snapshot(const SnapshotItem& s, Bytes& out) {
  out.push_back(static_cast<std::byte>(s.deleting ? kDeleting : 0));
  out.push_back(static_cast<std::byte>(s.inode_file_level));
  append_fixed(out, s.inode_file.address.v, 6);
  append_fixed(out, s.inode_file.crc, 4);
  append_fixed(out, static_cast<std::uint64_t>(s.made.seconds), 8);
  append_fixed(out, s.made.nanoseconds, 4);
  const std::uint64_t next_piece = s.next_piece | (s.automatic ? kAutomatic : 0);
  for (const std::uint64_t number :
       {s.clock, s.inode_file.blocks, s.data_blocks, s.reserved_blocks, s.inodes, next_piece, s.dead, s.alone})
    append_varint(out, number);
  const auto name = std::as_bytes(std::span(s.name));
  out.insert(out.end(), name.begin(), name.end());
}

Result<SnapshotItem> decode_snapshot(const Key& key, std::span<const std::byte> value) {
  Reader in(value);
  SnapshotItem s;
  s.serial = Serial{key.offset};
  const std::uint8_t flags = in.u8();
  s.deleting = flags & kDeleting;
  s.inode_file_level = in.u8();
  s.inode_file.address = BlockAddr{in.u48()};
  s.inode_file.crc = in.u32();
  s.made.seconds = static_cast<std::int64_t>(in.u64());
  s.made.nanoseconds = in.u32();
  for (std::uint64_t* number :
       {&s.clock, &s.inode_file.blocks, &s.data_blocks, &s.reserved_blocks, &s.inodes, &s.next_piece, &s.dead, &s.alone})
    *number = in.varint();
  s.name = in.text(in.left());
  // One that a reader from before has given another name is somebody's.
  s.automatic = s.next_piece & kAutomatic && s.name.starts_with(kAutomaticPrefix);
  s.next_piece &= ~kAutomatic;
  if (!in.ok() || flags & ~kDeleting) return corrupt("snapshot {}: bytes that make no sense", key.offset);
  if (!s.serial || s.serial.v > 2 * kMostCount || s.inode_file_level > kMaxTreeLevel || !s.inode_file ||
      s.made.nanoseconds >= 1'000'000'000 || s.alone > s.dead || s.dead > kMaxAddress || s.clock > 2 * kMostCount)
    return corrupt("snapshot {}: impossible values", key.offset);
  if (!check_possible_name(s.name).ok()) return corrupt("snapshot {}: impossible name", key.offset);
  return s;
}

// --- dead -----------------------------------------------------------------------------------------------------------------------

Key dead_key(Serial holder, std::uint64_t piece) { return {Ino{kListMark | holder.v}, ItemKind::dead, piece}; }

bool is_dead_key_of(const Key& key, Serial holder) { return key.kind == ItemKind::dead && key.ino.v == (kListMark | holder.v); }

std::uint64_t piece_number(const Key& key) { return key.offset & ~kAutomatic; }

bool DeadPieceBuilder::add(const DeadRun& run) {
  const std::size_t before = bytes_.size();
  append_varint(bytes_, run.length << 2 | flags_of(run.birth));
  append_difference(bytes_, run.address.v - end_);
  if (run.birth.of_node) {
    append_varint(bytes_, run.birth.when);
  } else {
    append_varint(bytes_, run.clock);
    bytes_.push_back(static_cast<std::byte>(run.estimate));
  }
  if (bytes_.size() > most_bytes_) {
    bytes_.resize(before);
    return false;
  }
  INVARIANT(bytes_.size() - before <= kDeadRunBytes);
  ++runs_;
  end_ = run.address.v + run.length;
  return true;
}

Bytes DeadPieceBuilder::finish(Serial death) {
  Bytes value;
  value.reserve(kMaxVarintBytes + bytes_.size());
  append_varint(value, death.v);
  value.insert(value.end(), bytes_.begin(), bytes_.end());
  INVARIANT(value.size() <= kMaxItemValue);
  bytes_.clear();
  runs_ = 0;
  end_ = 0;
  return value;
}

Result<DeadPiece> decode_dead(std::span<const std::byte> value) {
  Reader in(value);
  DeadPiece piece;
  piece.death = Serial{in.varint()};
  std::uint64_t end = 0;
  while (in.ok() && in.left() > 0) {
    DeadRun run;
    const std::uint64_t head = in.varint();
    run.length = head >> 2;
    run.birth.of_node = head & kOfNode;
    run.birth.ancient = head & kAncient;
    run.address = BlockAddr{end + static_cast<std::uint64_t>(in.signed_varint())};
    if (run.birth.of_node) {
      run.birth.when = in.varint();
    } else {
      const std::uint64_t clock = in.varint();
      run.birth.when = clock;
      run.clock = static_cast<std::uint32_t>(clock);
      run.estimate = in.u8();
    }
    if (!in.ok() || run.length == 0 || run.length > kMaxAddress || !run.address || run.address.v > kMaxAddress - run.length ||
        (run.birth.of_node && run.length != 1))
      return corrupt("list of dead blocks: {} blocks at {}", run.length, run.address);
    TRY(check_birth(run.birth, "list of dead blocks"));
    end = run.address.v + run.length;
    piece.runs.push_back(run);
  }
  if (!in.ok() || !piece.death || piece.runs.empty()) return corrupt("list of dead blocks: a piece that makes no sense");
  return piece;
}

// --- place and name -------------------------------------------------------------------------------------------------------------

Key place_key(BlockAddr named, Serial left) { return {Ino{named.v}, ItemKind::place, left.v}; }

void encode_place(const PlaceItem& item, Bytes& out) {
  append_fixed(out, item.place.v, 6);
  out.push_back(static_cast<std::byte>(flags_of(item.birth)));
  append_varint(out, item.birth.when);
}

Result<PlaceItem> decode_place(std::span<const std::byte> value) {
  Reader in(value);
  PlaceItem item;
  item.place = BlockAddr{in.u48()};
  const std::uint8_t flags = in.u8();
  item.birth.of_node = flags & kOfNode;
  item.birth.ancient = flags & kAncient;
  item.birth.when = in.varint();
  if (!in.ok() || in.left() || flags & ~(kOfNode | kAncient) || !item.place) return corrupt("place of a moved block: makes no sense");
  TRY(check_birth(item.birth, "place of a moved block"));
  return item;
}

Key name_key(BlockAddr place, Serial left) { return {Ino{place.v}, ItemKind::name, left.v}; }

void encode_name(BlockAddr named, Bytes& out) { append_fixed(out, named.v, 6); }

Result<BlockAddr> decode_name(std::span<const std::byte> value) {
  Reader in(value);
  const BlockAddr named{in.u48()};
  if (!in.ok() || in.left() || !named) return corrupt("name of a moved block: makes no sense");
  return named;
}

}  // namespace varve::format
