#include "tree/segment_ledger.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"
#include "format/estimate.h"

namespace varve::tree {

Result<SegmentLedger::Page*> SegmentLedger::page_of(SegmentId id) {
  if (const auto at = pages_.find(id); at != pages_.end()) return &at->second;
  TRY(map_.touch(id.v));
  const auto bytes = map_.record(id.v);
  Page page{TRY(format::decode_segment_record(bytes)), bytes.subspan(format::kSegmentRecordHeaderBytes), {}};
  if (dead_) page.before.assign(page.bits.begin(), page.bits.end());
  return &pages_.emplace(id, std::move(page)).first->second;
}

Status SegmentLedger::flip(Page& page, BlockAddr address, bool live) {
  INVARIANT(geometry_.contains(address));
  const std::uint32_t index = geometry_.index_of(address);
  MEMORY_INVARIANT(index / 8 < page.bits.size());
  std::byte& bits = page.bits[index / 8];
  const auto bit = std::byte{static_cast<unsigned char>(1u << (index % 8))};
  if (((bits & bit) != std::byte{}) == live)
    return Error(Errc::corrupt, fmt::format("block {} is {} in the free-region map although it {}; run fsck.varve", address,
                                            live ? "taken" : "free", live ? "was handed out" : "is owned"));
  bits ^= bit;
  page.record.live += live ? 1 : -1;
  live_change_ += live ? 1 : -1;
  return {};
}

Result<SegmentLedger::Page*> SegmentLedger::change(BlockAddr address, bool live) {
  Page* const page = TRY(page_of(geometry_.segment_of(address)));
  TRY(flip(*page, address, live));
  return page;
}

// The blocks of each segment that it goes through.
template <class Change>
Status SegmentLedger::for_each_page(const format::Extent& extent, Change change) {
  for (std::uint64_t done = 0; done < extent.length;) {
    const BlockAddr start = extent.address + done;
    const std::uint64_t blocks = std::min<std::uint64_t>(extent.length - done, geometry_.blocks - geometry_.index_of(start));
    TRY(change(*TRY(page_of(geometry_.segment_of(start))), start, blocks));
    done += blocks;
  }
  return {};
}

namespace {
// They may never have been counted.
void forget_rate(format::SegmentRecord& record, std::uint64_t blocks, std::uint8_t estimate) {
  record.rate_sum -= std::min(record.rate_sum, blocks * format::rate_of(estimate));
}
}  // namespace

Status SegmentLedger::release(const format::Extent& extent) {
  return for_each_page(extent, [&](Page& page, BlockAddr start, std::uint64_t blocks) -> Status {
    for (std::uint64_t i = 0; i < blocks; ++i) TRY(flip(page, start + i, false));
    page.record.clock_sum -= blocks * extent.clock;
    forget_rate(page.record, blocks, extent.estimate);
    return {};
  });
}

Status SegmentLedger::hold(const format::Extent& extent) {
  return for_each_page(extent, [&](Page& page, BlockAddr, std::uint64_t blocks) -> Status {
    forget_rate(page.record, blocks, extent.estimate);
    return {};
  });
}

Status SegmentLedger::release(BlockAddr node) {
  TRY(change(node, false));
  return {};
}

Status SegmentLedger::claim(BlockAddr node) {
  TRY(change(node, true));
  return {};
}

Status SegmentLedger::claim(const BlockEntry& block) {
  format::SegmentRecord& record = TRY(change(block.place.address(), true))->record;
  record.clock_sum += block.clock;
  record.rate_sum += format::rate_of(block.place.estimate());
  record.youngest = std::max(record.youngest, block.clock);
  return {};
}

Status SegmentLedger::claim_held(BlockAddr address, const format::ReverseEntry& owner) {
  if (owner.owner != format::Owner::file_block) return claim(address);
  BlockEntry block;
  block.place = BlockPlace::at(address);
  block.clock = owner.clock;
  return claim(block);
}

// Segments that will be handed out as a whole are left out. So are those that are being written: their blocks come when they are closed.
void SegmentLedger::note_dead(SegmentId id, const Page& page, std::uint64_t frozen) {
  const segments::SegmentInfo now = segments_.info(id);
  if (!page.record.live || now.state != segments::SegmentState::used || now.touched > frozen) return;
  dead_->add(geometry_.start_of(id), geometry_.blocks, page.before, page.bits,
             now.touched == frozen ? DeadRuns::Which::all : DeadRuns::Which::new_ones);
}

SegmentLedger::Changed SegmentLedger::finish(std::uint64_t frozen) {
  Changed changed;
  changed.reserve(pages_.size());
  for (auto& [id, page] : pages_) {
    format::SegmentRecord& record = page.record;
    record.group = segments_.info(id).group;
    if (!record.live) record.youngest = 0, record.clock_sum = record.rate_sum = 0;
    MEMORY_INVARIANT(!map_.record(id.v).empty());
    format::encode_segment_record(record, map_.record(id.v));
    if (dead_) note_dead(id, page, frozen);
    changed.emplace_back(id, record);
  }
  return changed;
}

}  // namespace varve::tree
