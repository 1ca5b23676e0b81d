#include "log/recovery.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/invariant.h"
#include "format/image_mark.h"
#include "format/record.h"
#include "io/patient_read.h"

namespace varve::log {

namespace {

constexpr std::size_t kReadWindow = 1u << 20;
constexpr std::uint64_t kReadPiece = 64u << 10;  // where not all of it can be read

// Sequential reader with read-ahead over a part of the device. Unreadable blocks come back as zeros: whether they matter
// is decided by what should have stood there (H11). It knows which they are, as they may be readable another day.
class Window {
 public:
  struct Segments {
    std::uint64_t first, bytes;  // of the device; 0 bytes: the chain goes only forward in them
  };
  Window(io::BlockDevice& device, Segments segments) : device_(device), segments_(segments), buffer_(kReadWindow) {}

  // `count` blocks at `address`; valid until the next call.
  std::span<const std::byte> get(BlockAddr address, std::uint32_t count) {
    const std::uint64_t offset = address.v << kBlockShift;
    const std::uint64_t bytes = std::uint64_t{count} << kBlockShift;
    if (!holds(offset, bytes)) fill(begin_for(offset));
    if (!holds(offset, bytes)) fill(offset);
    if (!holds(offset, bytes)) return {};
    return buffer_.span().subspan(offset - start_, bytes);
  }
  // Of what get() has returned last.
  bool is_unreadable(BlockAddr address, std::uint32_t count) const {
    return std::ranges::any_of(unreadable_, [&](BlockAddr block) { return block >= address && block < address + count; });
  }

 private:
  bool holds(std::uint64_t offset, std::uint64_t bytes) const { return offset >= start_ && offset + bytes <= start_ + filled_; }

  // A chain with gaps goes round and round in a segment: once it has gone back, segments are read as a whole.
  std::uint64_t begin_for(std::uint64_t offset) {
    if (!segments_.bytes || offset < segments_.first || (offset >= start_ && !goes_round_)) return offset;
    if (!goes_round_) buffer_ = AlignedBuffer(std::max<std::size_t>(segments_.bytes, kReadWindow));
    goes_round_ = true;
    return offset - (offset - segments_.first) % segments_.bytes;
  }

  void fill(std::uint64_t begin) {
    start_ = begin;
    unreadable_.clear();
    const std::uint64_t device_bytes = device_.geometry().size_bytes;
    filled_ = begin < device_bytes ? std::min<std::uint64_t>(buffer_.size(), device_bytes - begin) : 0;
    const auto bytes = buffer_.span().first(filled_);
    if (bytes.empty() || device_.read(begin, bytes).ok()) return;
    for (std::uint64_t at = 0; at < filled_; at += kReadPiece) fill_piece(at, bytes.subspan(at, std::min(filled_ - at, kReadPiece)));
  }

  void fill_piece(std::uint64_t at, std::span<std::byte> piece) {
    const std::vector<bool> is_there = io::read_what_is_there(device_, start_ + at, piece);
    for (std::size_t i = 0; i < is_there.size(); ++i)
      if (!is_there[i]) unreadable_.push_back(BlockAddr{block_of(start_ + at) + i});
  }

  io::BlockDevice& device_;
  const Segments segments_;
  AlignedBuffer buffer_;
  bool goes_round_ = false;
  std::uint64_t start_ = 0;
  std::uint64_t filled_ = 0;
  std::vector<BlockAddr> unreadable_;  // in the buffer
};

struct HeldChunk {
  format::ChunkHeader header;
  std::uint32_t crc = 0;
  format::Bytes records;
};

class Walk {
 public:
  Walk(io::BlockDevice& device, const format::Superblock& super, const ChunkVisitor& visit, const RecoveryOptions& options)
      : device_(device), super_(super), visit_(visit), options_(options), window_(device, rounds_of(super)), tail_window_(device, {}) {
    result_.position = {super.chain, super.next_run, super.lsn, super.chain_crc};
    result_.clock = super.clock;
    result_.next_ino = super.next_ino;
    next_ = result_.position;
    durable_ = super.lsn;
  }

  Result<Recovered> run() {
    while (auto chunk = read_next()) TRY(hold(*chunk));
    TRY(release_durable());
    while (!held_.empty()) {
      const BlockAddr behind = std::exchange(unreadable_, {});
      if (!TRY(payload_is_there(held_.front()))) {
        result_.cut_short = true;
        break;
      }
      unreadable_ = behind;
      TRY(accept());
    }
    if (options_.looks_behind) TRY(judge_end());
    return std::move(result_);
  }

 private:
  static Window::Segments rounds_of(const format::Superblock& super) {
    if (!(super.features.incompat & format::kIncompatGaps)) return {};
    return {super.first_segment.v << kBlockShift, std::uint64_t{super.segment_blocks} << kBlockShift};
  }

  // The chunk with the next LSN, in one of the two places where it may stand.
  std::optional<HeldChunk> read_next() {
    unreadable_ = {};
    if (auto chunk = read_at(next_.rest.start, next_.rest.end())) return chunk;
    if (next_.next_run.blocks) return read_at(next_.next_run.start, next_.next_run.end());
    return std::nullopt;
  }

  std::optional<HeldChunk> read_at(BlockAddr address, BlockAddr end) {
    if (!address || address >= end) return std::nullopt;
    auto first = read(window_, address, 1);
    if (first.empty()) return std::nullopt;
    auto peeked = format::peek_chunk(first);
    if (!peeked.ok() || !fits(*peeked, address, end)) return std::nullopt;
    auto blocks = read(window_, address, peeked->header_blocks);
    if (blocks.empty()) return std::nullopt;
    auto decoded = format::decode_chunk(blocks);
    if (!decoded.ok() || !fits(decoded->header, address, end)) return std::nullopt;
    if (options_.accept_damage && !are_records(decoded->records)) return std::nullopt;  // what comes before them is kept
    return HeldChunk{decoded->header, decoded->crc, {decoded->records.begin(), decoded->records.end()}};
  }

  // Notes a place that cannot be read: perhaps only that is why the log ends here.
  std::span<const std::byte> read(Window& window, BlockAddr address, std::uint32_t count) {
    const auto bytes = window.get(address, count);
    if (window.is_unreadable(address, count)) unreadable_ = address;
    return bytes;
  }

  bool fits(const format::ChunkHeader& h, BlockAddr address, BlockAddr end) const {
    return h.identity == super_.identity && h.epoch == super_.epoch && h.lsn == next_.lsn + 1 &&
           h.previous_crc == next_.crc && h.address == address && h.end() <= end;
  }

  Status hold(HeldChunk& chunk) {
    const format::ChunkHeader& h = chunk.header;
    result_.settled = std::max(result_.settled, h.settled);
    if (h.settled > super_.serial && !options_.accept_damage)
      return Error(Errc::needs_fsck,
                   fmt::format("{}: the log names checkpoint {}, but the newest superblock found is {}: a superblock is "
                               "lost; run fsck.varve",
                               device_.name(), h.settled, super_.serial));
    durable_ = std::max(durable_, h.durable);
    next_ = {h.rest(), h.next_run, h.lsn, chunk.crc};
    held_.push_back(std::move(chunk));
    return release_durable();
  }

  Status release_durable() {
    while (!held_.empty() && held_.front().header.lsn <= durable_) TRY(accept());
    return {};
  }

  Status accept() {
    MEMORY_INVARIANT(!held_.empty());
    HeldChunk chunk = std::move(held_.front());
    held_.pop_front();
    const format::ChunkHeader& h = chunk.header;
    INVARIANT(h.lsn == result_.position.lsn + 1);
    TRY(visit_(format::Chunk{h, chunk.crc, chunk.records}));
    result_.position = {h.rest(), h.next_run, h.lsn, chunk.crc};
    result_.clock = std::max(result_.clock, h.clock);
    result_.next_ino = h.next_ino;
    ++result_.chunks;
    result_.blocks += h.total_blocks();
    return {};
  }

  // Every block that the chunk's records map has the CRC they name. Moves too: the cleaner's copy was complete before
  // its record was sealed, but perhaps not flushed.
  // Records that cannot be read behind a sound checksum were written so: a crash does not do that, and nothing is cut off for it.
  Result<bool> payload_is_there(const HeldChunk& chunk) {
    if (format::is_image(super_)) return true;  // nothing of it is, and all that was whole has been copied
    bool is_there = true;
    const Status decoded = format::decode_records(chunk.records, [&](const format::Record& record) -> Status {
      const auto* map = std::get_if<format::MapBlocks>(&record);
      if (!map) return {};
      for (std::size_t i = 0; i < map->crcs.size(); ++i) {
        auto block = read(tail_window_, map->address + i, 1);
        is_there = !block.empty() && crc32c(block) == map->crcs[i];
        if (!is_there) return Errc::corrupt;
      }
      return {};
    });
    if (is_there && !decoded.ok()) return unreadable(chunk.header.lsn, decoded.error());
    return is_there;
  }

  static bool are_records(std::span<const std::byte> bytes) {
    return format::decode_records(bytes, [](const format::Record&) { return Status(); }).ok();
  }

  Error unreadable(Lsn chunk, const Error& why) const {
    return {Errc::needs_fsck, fmt::format("{}: chunk {} of the log is whole, but not understood: {}; run fsck.varve, or look at its "
                                          "last checkpoint with -o ro,norecovery", device_.name(), chunk, why.message())};
  }

  // Is there, behind the end, a chunk that proves that more had been durable? Then this is no crash. It may have come long after what is
  // lost, as chunks for which nobody waits prove nothing: each one that is found leads on to the next segment.
  Status judge_end() {
    const Lsn cut = result_.position.lsn + 1;
    Lsn durable = durable_;
    const segments::SegmentGeometry segments{super_.first_segment, super_.segment_blocks, super_.segments};
    std::set<SegmentId> seen;
    std::deque<format::Run> places{result_.position.rest, result_.position.next_run};
    for (; !places.empty(); places.pop_front()) {
      const format::Run run = where_log_may_go_on(super_, places.front());
      if (!run.blocks || !segments.contains(run.start) || !seen.insert(segments.segment_of(run.start)).second) continue;
      const std::uint32_t most = segments.blocks - segments.index_of(run.start);
      for (std::uint32_t i = 0; i < std::min(run.blocks, most); ++i) {
        const auto header = chunk_at(run.start + i);
        if (!header || header->lsn < cut) continue;
        durable = std::max(durable, header->durable);
        if (header->next_run.blocks) places.push_back(header->next_run);
        if (result_.behind.empty() || !(result_.behind.back() == run)) result_.behind.push_back(run);
      }
    }
    return durable >= cut && !options_.accept_damage ? Status(damage(cut)) : Status();
  }

  // A whole one of this mount, wherever it may stand in the order.
  std::optional<format::ChunkHeader> chunk_at(BlockAddr address) {
    const auto block = window_.get(address, 1);
    if (block.empty()) return std::nullopt;
    const auto peeked = format::peek_chunk(block);
    if (!peeked.ok() || peeked->epoch != super_.epoch || peeked->identity != super_.identity) return std::nullopt;
    const auto blocks = window_.get(address, peeked->header_blocks);
    if (blocks.empty()) return std::nullopt;
    const auto decoded = format::decode_chunk(blocks);
    if (!decoded.ok() || decoded->header.address != address) return std::nullopt;
    return decoded->header;
  }

  // What cannot be read now is not damage: it may be there another day, or in a copy of the device.
  Status damage(Lsn cut) const {
    if (unreadable_)
      return Error(Errc::io, fmt::format("{}: chunk {} of the log had been flushed, but cannot be read (block {}): look at the disk, or "
                                         "copy it elsewhere and go on there; its last checkpoint can be seen with -o ro,norecovery",
                                         device_.name(), cut, unreadable_));
    return Error(Errc::needs_fsck, fmt::format("{}: chunk {} of the log is damaged although it had been flushed; run "
                                               "fsck.varve, or look at its last checkpoint with -o ro,norecovery",
                                               device_.name(), cut));
  }

  io::BlockDevice& device_;
  const format::Superblock& super_;
  const ChunkVisitor& visit_;
  const RecoveryOptions& options_;
  Window window_, tail_window_;
  Recovered result_;
  ChainPosition next_;
  Lsn durable_;
  BlockAddr unreadable_;  // met where the log ends; none: all could be read there
  std::deque<HeldChunk> held_;
};

}  // namespace

format::Run where_log_may_go_on(const format::Superblock& super, const format::Run& rest) {
  const segments::SegmentGeometry segments{super.first_segment, super.segment_blocks, super.segments};
  if (!(super.features.incompat & format::kIncompatGaps) || !rest.blocks || !segments.contains(rest.start)) return rest;
  return {segments.start_of(segments.segment_of(rest.start)), super.segment_blocks};
}

Result<Recovered> recover_chain(io::BlockDevice& device, const format::Superblock& super, const ChunkVisitor& visit,
                                const RecoveryOptions& options) {
  return Walk(device, super, visit, options).run();
}

}  // namespace varve::log
