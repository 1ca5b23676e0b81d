// The chain: where the next chunk stands, and where it goes on after that.
//
// Usually that is right behind it. But on a disk that turns this place has gone by when the next chunk comes. So a chunk may leave a gap
// (turn_gap.h), and its header says where the chain goes on. At the end of the segment the chain goes round and fills the gaps,
// until what is left of them is too small. All chunks in a segment name the next one beforehand: were one of them damaged, what
// comes after it would still be found (H9). At first only the first one does, so the second one stands right behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/turn_gap.h"
#include "format/chunk.h"
#include "segments/heads.h"
#include "segments/segment_table.h"

namespace varve::log {

struct ChainPosition {
  format::Run rest;      // start = where the next chunk stands if it fits
  format::Run next_run;  // where it stands otherwise
  Lsn lsn;               // of the newest chunk
  std::uint32_t crc = 0;
};

struct ChunkPlace {
  BlockAddr address;
  format::Run run;        // that it stands in: with what is free behind it, if the next one may stand there
  format::Run next_run;
  format::Run elsewhere;  // where the next one stands, if not right behind it
  std::uint16_t header_blocks = 0;
  std::uint32_t payload_blocks = 0;
  std::optional<std::uint32_t> before;  // blocks between it and the one before, if that stands further back in the segment
  bool is_among_gaps = false;           // some of the segment, behind it or elsewhere
  BlockAddr payload() const { return address + header_blocks; }
  std::uint32_t total_blocks() const { return header_blocks + payload_blocks; }
};

// Used with the gate closed.
class Chain {
 public:
  Chain(segments::SegmentTable& segments, const segments::Heads& heads) : segments_(segments), heads_(heads) {}

  void start(const ChainPosition& position) REQUIRES(the_gate) { position_ = position; }
  const ChainPosition& position() const REQUIRES_SHARED(the_gate) { return position_; }

  // Are there so many clean segments that gaps may be left? Any thread.
  bool has_room_for_gaps() const;
  // Where the next chunk will stand, with a gap behind it, unless it is the first one in its segment. take() follows. Errc::no_space
  // when the chain has no segment to go on in.
  Result<ChunkPlace> place(std::uint16_t header_blocks, std::uint32_t payload_blocks, const device::TurnGap::Choice& gap)
      REQUIRES(the_gate);
  // The chunk will be written there.
  void take(const ChunkPlace& place, std::uint32_t crc) REQUIRES(the_gate);
  // The next chunk will be the last one in a segment at or beyond the limit (SegmentTable), and be of one block: it announces places
  // below. False: nothing stands there. Errc::no_space: no segment below is clean; nothing has changed.
  Result<bool> prepare_to_leave() REQUIRES(the_gate);
  // Gaps of segments that it has left. Any thread.
  std::uint64_t blocks_given_up() const { return given_up_.load(std::memory_order_relaxed); }

 private:
  bool advance() REQUIRES(the_gate);  // to the next run
  void leave_segment() REQUIRES(the_gate);
  void give_up_gaps() REQUIRES(the_gate);
  format::Run behind(BlockAddr end, const device::TurnGap::Choice& gap) REQUIRES(the_gate);
  std::optional<format::Run> take_from(BlockAddr begin) REQUIRES(the_gate);
  void put_back(const format::Run& run) REQUIRES(the_gate);
  std::uint64_t least_useful() const REQUIRES(the_gate);  // blocks in which most chunks have room

  segments::SegmentTable& segments_;
  const segments::Heads& heads_;  // tell the clock
  ChainPosition position_ GUARDED_BY(the_gate);
  std::vector<format::Run> gaps_ GUARDED_BY(the_gate);       // in the segment of position_.rest, in order
  std::uint64_t usual_ GUARDED_BY(the_gate) = 0;             // that most chunks do with, in sixteenths of a block
  std::optional<std::uint32_t> left_ GUARDED_BY(the_gate);   // in front of position_.rest
  std::atomic<std::uint64_t> given_up_{0};
  format::Run following_ GUARDED_BY(the_gate);               // of the chunk that has been placed: the rest then
};

}  // namespace varve::log
