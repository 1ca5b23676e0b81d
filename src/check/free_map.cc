#include "check/free_map.h"

#include <algorithm>

namespace varve::check {

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

}  // namespace varve::check
