#include "check/claims.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/mix.h"
#include "format/estimate.h"

namespace varve::check {

namespace {

constexpr std::size_t kMostConflicts = 1000;

const std::uint64_t kPerLeaf = format::reverse_map_shape(1).per_leaf();

}  // namespace

std::uint64_t entry_hash(BlockAddr address, const format::ReverseEntry& entry) {
  std::array<std::byte, format::kReverseEntryBytes> bytes{};
  format::encode_reverse_entry(entry, bytes);
  std::array<std::uint64_t, 3> words;
  static_assert(sizeof(words) == sizeof(bytes));
  std::memcpy(words.data(), bytes.data(), sizeof(words));
  std::uint64_t hash = mix64(address.v + 0x9E3779B97F4A7C15ULL);
  for (const std::uint64_t word : words) hash = mix64(hash ^ word);
  return hash;
}

std::string describe(const format::ReverseEntry& e) {
  switch (e.owner) {
    case format::Owner::none: return "nobody";
    case format::Owner::file_block:
      return fmt::format("inode {} block {} (clock {}, estimate {}, crc {:08x})", e.ino, e.block, e.clock, e.estimate, e.crc);
    case format::Owner::node: return fmt::format("a node of {} at level {}", name_of(e.tree), e.level);
    case format::Owner::super_image: return "the superblock's image";
  }
  return "unknown";
}

Claims::Claims(const format::Superblock& super)
    : segment_blocks_(super.segment_blocks), first_(super.first_segment),
      end_(super.first_segment + super.segments * super.segment_blocks), bits_(end_.v / 64 + 1), segments_(super.segments),
      hash_sums_(format::reverse_map_shape(super.device_blocks).leaves()) {}

Claim Claims::claim(BlockAddr address, const format::ReverseEntry& owner) { return claim_for(By::newest, address, owner); }

Claim Claims::claim_for(By by, BlockAddr address, const format::ReverseEntry& owner) {
  if (!is_inside(address)) return Claim::outside;
  if (recorder_) recorder_(address, owner);
  if (is_claimed(address)) {
    if (conflicts_.size() < kMostConflicts) conflicts_.insert(address.v);
    return Claim::twice;
  }
  const std::uint64_t hash = entry_hash(address, owner);
  hash_sums_[address.v / kPerLeaf] += hash;
  if (!tags_.empty()) tags_[address.v] = static_cast<std::uint16_t>(hash);
  enter(by, address, owner.owner == format::Owner::file_block, owner.clock, owner.estimate);
  return Claim::good;
}

Claim Claims::claim_shared(BlockAddr address, const format::ReverseEntry& owner) {
  if (!is_inside(address) || !is_claimed(address)) return claim_for(By::snapshot, address, owner);
  const bool is_same = tags_[address.v] == static_cast<std::uint16_t>(entry_hash(address, owner));
  return is_same && !is_nameless(address) ? Claim::shared : Claim::twice;
}

Claim Claims::claim_listed(BlockAddr address, bool of_node, std::uint32_t clock, std::uint8_t estimate) {
  if (!is_inside(address)) return Claim::outside;
  if (is_claimed(address)) return Claim::shared;
  nameless_.insert(address.v);
  enter(By::snapshot, address, !of_node, clock, estimate);
  return Claim::good;
}

void Claims::enter(By by, BlockAddr address, bool of_file, std::uint32_t clock, std::uint8_t estimate) {
  bits_[address.v / 64] |= 1ULL << (address.v % 64);
  Segment& segment = segments_[(address - first_) / segment_blocks_];
  ++segment.live;
  ++live_;
  if (!of_file) return;
  ++data_;
  segment.clock_sum += clock;
  segment.youngest = std::max(segment.youngest, clock);
  segment.rate_sum += format::rate_of(estimate);
  if (by == By::snapshot) segment.held_rate += format::rate_of(estimate);
}

Claim Claims::claim_node(BlockAddr address, format::TreeId tree, unsigned level, bool may_be_shared) {
  format::ReverseEntry entry;
  entry.owner = format::Owner::node;
  entry.tree = tree;
  entry.level = static_cast<std::uint8_t>(level);
  return may_be_shared ? claim_shared(address, entry) : claim(address, entry);
}

format::ReverseEntry entry_of(Ino ino, std::uint64_t first, const format::Extent& extent, std::uint64_t index) {
  format::ReverseEntry entry;
  entry.owner = format::Owner::file_block;
  entry.estimate = extent.estimate;
  entry.ino = ino;
  entry.block = first + index;
  entry.clock = extent.clock;
  entry.crc = extent.crcs[index];
  return entry;
}

}  // namespace varve::check
