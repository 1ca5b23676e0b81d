#include "check/maps.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace varve::check {

// --- which blocks are free ---------------------------------------------------------------------------------------------

namespace {

class FreeMapCheck {
 public:
  FreeMapCheck(Context& context, const Claims& claims) : context_(context), claims_(claims) {}

  void record(std::uint64_t segment, std::span<const std::byte> bytes);
  void absent(std::uint64_t until);  // segments below `until` that had no record: all zero
  void skip_until(std::uint64_t segment) { next_ = segment; }
  std::uint64_t next() const { return next_; }

 private:
  BlockAddr start_of(std::uint64_t segment) const {
    return context_.super().first_segment + segment * context_.super().segment_blocks;
  }
  void check_bits(std::uint64_t segment, std::span<const std::byte> bits);
  void check_counters(std::uint64_t segment, const format::SegmentRecord& record);

  Context& context_;
  const Claims& claims_;
  std::uint64_t next_ = 0;
};

void FreeMapCheck::record(std::uint64_t segment, std::span<const std::byte> bytes) {
  const auto record = format::decode_segment_record(bytes);
  next_ = segment + 1;
  if (!record.ok())
    return context_.add(Code::free_map_record_damaged, {start_of(segment), {}}, record.error().message());
  check_bits(segment, bytes.subspan(format::kSegmentRecordHeaderBytes));
  check_counters(segment, *record);
}

void FreeMapCheck::absent(std::uint64_t until) {
  for (; next_ < until; ++next_)
    if (const auto& claimed = claims_.segment(next_); claimed.live > 0)
      context_.add(Code::free_map_bits_wrong, {start_of(next_), {}},
                   fmt::format("segment {}: no record, {} live blocks", next_, claimed.live));
}

void FreeMapCheck::check_bits(std::uint64_t segment, std::span<const std::byte> bits) {
  const BlockAddr start = start_of(segment);
  std::uint64_t lost = 0, leaked = 0, first = 0;
  for (std::uint32_t i = 0; i < context_.super().segment_blocks; ++i) {
    const bool live = static_cast<std::uint8_t>(bits[i / 8]) >> (i % 8) & 1;
    const bool claimed = claims_.is_claimed(start + i);
    if (live == claimed) continue;
    if (lost + leaked == 0) first = i;
    ++(claimed ? lost : leaked);
  }
  if (lost + leaked > 0)
    context_.add(Code::free_map_bits_wrong, {start + first, {}},
                 fmt::format("segment {}: {} live blocks shown as free, {} free ones as live", segment, lost, leaked));
}

void FreeMapCheck::check_counters(std::uint64_t segment, const format::SegmentRecord& record) {
  const Claims::Segment& claimed = claims_.segment(segment);
  auto complain = [&](const char* what, std::uint64_t is, std::uint64_t should) {
    context_.add(Code::free_map_counter_wrong, {start_of(segment), {}},
                 fmt::format("segment {}: {} {} instead of {}", segment, what, is, should));
  };
  if (record.live != claimed.live) complain("live blocks", record.live, claimed.live);
  if (record.clock_sum != claimed.clock_sum) complain("sum of clocks", record.clock_sum, claimed.clock_sum);
  // Less than there is, if somebody did not count: an estimate itself is one of many (docs/format.md).
  if (record.rate_sum > claimed.rate_sum) complain("sum of rates", record.rate_sum, claimed.rate_sum);
  if (record.youngest > context_.super().clock / context_.super().clock_unit)
    complain("youngest clock", record.youngest, claimed.youngest);
  // Blocks die without telling which is the youngest now: an upper bound is enough for cleaning policies.
  if (record.youngest < claimed.youngest) complain("youngest clock", record.youngest, claimed.youngest);
}

}  // namespace

void check_free_map(Context& context, const Claims& claims, MapWalk& map) {
  const format::Superblock& super = context.super();
  const format::MapShape shape = format::free_map_shape(super.segments, super.segment_blocks);
  FreeMapCheck check(context, claims);
  map.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    check.absent(first);
    if (records.empty()) return check.skip_until(std::min(first + shape.per_leaf(), super.segments));
    for (std::uint64_t i = 0; i < shape.per_leaf() && first + i < super.segments; ++i)
      check.record(first + i, records.subspan(i * shape.record_bytes, shape.record_bytes));
    context.update("segments", check.next(), super.segments);
  });
  check.absent(super.segments);
}

// --- whose the others are ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostLeavesLocated = 1000;  // of .mfile; what is wrong in more is counted, not listed

using Owners = std::unordered_map<std::uint64_t, format::ReverseEntry>;  // by address

// Calls visit(address, entry bytes) for each live block that has a leaf.
template <class Visit>
void for_each_live(const Claims& claims, std::uint64_t first, std::span<const std::byte> records, Visit visit) {
  const std::uint64_t count = records.size() / format::kReverseEntryBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const BlockAddr address{first + i};
    if (claims.is_inside(address) && claims.is_claimed(address) && !claims.is_nameless(address))
      visit(address, records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes));
  }
}

// Leaves of .mfile whose entries are not what the claims add up to.
std::unordered_map<std::uint64_t, bool> differing_leaves(Context& context, const Claims& claims, MapWalk& map,
                                                          std::uint64_t per_leaf) {
  std::vector<std::uint64_t> sums = claims.hash_sums();
  map.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    for_each_live(claims, first, records, [&](BlockAddr address, std::span<const std::byte> bytes) {
      const auto entry = format::decode_reverse_entry(bytes);
      sums[first / per_leaf] -= entry.ok() ? entry_hash(address, *entry) : 1;
    });
    if (records.empty()) sums[first / per_leaf] = 0;
    context.update("owners", first, context.super().device_blocks);
  });
  std::unordered_map<std::uint64_t, bool> leaves;  // value: its node exists
  for (std::uint64_t i = 0; i < sums.size() && leaves.size() < kMostLeavesLocated; ++i)
    if (sums[i] != 0) leaves.emplace(i, false);
  return leaves;
}

}  // namespace

void report_conflicts(Context& context, const Claims& claims, const ClaimAgain& claim_again) {
  if (claims.conflicts().empty()) return;
  std::map<std::uint64_t, std::string> owners;
  Claims again(context.super());
  again.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) {
    if (!claims.conflicts().contains(address.v)) return;
    std::string& list = owners[address.v];
    list += (list.empty() ? "" : "; ") + describe(entry);
  });
  claim_again(again);
  for (const auto& [address, list] : owners) context.add(Code::claimed_twice, {BlockAddr{address}, {}}, list);
}

void check_reverse_map(Context& context, const Claims& claims, MapWalk& map, const ClaimAgain& claim_again) {
  const std::uint64_t per_leaf = format::reverse_map_shape(1).per_leaf();
  auto leaves = differing_leaves(context, claims, map, per_leaf);
  if (leaves.empty()) return;
  Owners owners;
  Claims again(context.super());
  again.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) {
    if (leaves.contains(address.v / per_leaf)) owners.emplace(address.v, entry);
  });
  claim_again(again);
  auto compare = [&](BlockAddr address, const format::ReverseEntry& recorded) {
    const auto owner = owners.find(address.v);
    if (owner != owners.end() && owner->second != recorded)
      context.add(Code::reverse_map_wrong, {address, owner->second.ino},
                  fmt::format("{} instead of {}", describe(recorded), describe(owner->second)));
  };
  map.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    const auto leaf = leaves.find(first / per_leaf);
    if (leaf == leaves.end()) return;
    leaf->second = true;
    for_each_live(claims, first, records, [&](BlockAddr address, std::span<const std::byte> bytes) {
      const auto entry = format::decode_reverse_entry(bytes);
      if (entry.ok()) compare(address, *entry);
      else context.add(Code::reverse_map_wrong, {address, {}}, entry.error().message());
    });
  });
  for (const auto& [leaf, exists] : leaves)
    for (std::uint64_t i = 0; !exists && i < per_leaf; ++i) compare(BlockAddr{leaf * per_leaf + i}, {});
}

}  // namespace varve::check
