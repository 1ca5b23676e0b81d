// The log as a place to append: heads of the temperature groups for bare payload, and the one chain of chunks.
//
// What takes from the heads, the holes and the chain is called with the gate closed; everything else is thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "device/flow.h"
#include "device/io_context.h"
#include "device/turn_gap.h"
#include "format/superblock.h"
#include "log/chain.h"
#include "log/durability.h"
#include "log/payload.h"
#include "segments/heads.h"
#include "segments/segment_table.h"

namespace varve::log {

struct ChunkStamp {  // what the header says of the filesystem's state
  std::uint64_t clock = 0;
  std::uint64_t next_ino = 0;
};

struct Urgency {  // of a chunk
  bool commit = false;         // somebody waits until it is durable
  std::uint64_t since_ns = 0;  // when the oldest of what it holds was acknowledged
};

class Log {
 public:
  // `most_in_flight`: bytes, whatever the device can do. `chunk_gap`: blocks behind each chunk that somebody waits for; none given: as
  // is best for a disk that turns, else none.
  Log(device::IoContext& io, segments::SegmentTable& segments, std::uint64_t identity, Clock& clock, std::uint64_t most_in_flight,
      std::optional<std::uint32_t> chunk_gap = std::nullopt);
  ~Log();

  // `epoch_on_disk`: the superblocks already name this epoch; else chunks are held until epoch_written().
  void start(const ChainPosition& position, std::uint64_t epoch, bool epoch_on_disk) REQUIRES(the_gate);
  segments::Heads& heads() { return heads_; }
  // Starts the write of payload at run.start…; the blocks can be read from in_flight() until it is done. `reactor` here and
  // below: of the calling thread, or null (IoContext::start).
  void write_payload(const format::Run& run, std::span<const PayloadPtr> blocks, io::Reactor* reactor);

  // Where the next chunk will stand; write_chunk() follows. `commit`: somebody waits until it is durable. Errc::no_space when the chain
  // has no segment to go on in.
  Result<ChunkPlace> place_chunk(std::uint16_t header_blocks, std::uint32_t payload_blocks, bool commit) REQUIRES(the_gate);
  // Starts its write. Returns its LSN.
  Lsn write_chunk(const ChunkPlace& place, std::span<const std::byte> records, std::span<const PayloadPtr> payload,
                  const ChunkStamp& stamp, const Urgency& urgency, io::Reactor* reactor = nullptr) REQUIRES(the_gate);

  // Gets the chain out of segments at or beyond the limit (SegmentTable). What has been announced is kept to: a chunk without records
  // stands there, and announces other places. Errc::no_space: no segment below is clean; nothing has changed.
  Status leave(const ChunkStamp& stamp, std::uint64_t now_ns) REQUIRES(the_gate);

  // The first chunk of a mount needs its epoch in the superblocks: `wanted` is called once, outside locks.
  void on_epoch_wanted(std::function<void()> wanted) { epoch_wanted_ = std::move(wanted); }
  void epoch_written() noexcept;  // what it lacks memory for would be waited for, for ever
  // No chunk is written any more. Those that are held end with an error, so that operations that wait for less in flight go on.
  // They are told by this call, never by write_chunk(), which holds the gate closed: to be repeated after that.
  void give_up();
  // The newest checkpoint that has settled: the headers of chunks say so from now on.
  void note_settled(Serial serial) { settled_.store(serial.v); }
  Serial settled() const { return Serial{settled_.load()}; }
  // What the next chunks carry.
  std::uint64_t epoch() const { return epoch_; }
  // What the superblocks must allow before there are any.
  bool leaves_gaps() const { return turn_gap_.leaves_any(); }
  format::Chunks chunks_allowed() const { return leaves_gaps() ? format::Chunks::with_gaps : format::Chunks::in_rows; }

  ChainPosition position() const REQUIRES_SHARED(the_gate) { return chain_.position(); }
  InFlightTable& in_flight() { return in_flight_; }
  Durability& durability() { return durability_; }
  device::Flow& flow() { return flow_; }

  // Counts what the chain has taken, with the gaps that nothing will stand in any more.
  std::uint64_t blocks_taken() const { return header_blocks() + payload_blocks() + chain_.blocks_given_up(); }
  std::uint64_t chunks() const { return chunks_written_.load(std::memory_order_relaxed); }
  std::uint64_t header_blocks() const { return header_blocks_written_.load(std::memory_order_relaxed); }
  std::uint64_t payload_blocks() const { return payload_blocks_written_.load(std::memory_order_relaxed); }

 private:
  struct Write;
  std::unique_ptr<Write> new_write(BlockAddr at);
  void add_payload(Write& write, BlockAddr at, std::span<const PayloadPtr> blocks);
  std::vector<std::unique_ptr<Write>> writes_of(BlockAddr at, std::span<const PayloadPtr> blocks);
  void start(std::unique_ptr<Write> write, io::Reactor* reactor);
  void written(Write& write);
  void submit_chunk(std::unique_ptr<Write> chunk, io::Reactor* reactor);

  device::IoContext& io_;
  segments::SegmentTable& segments_;
  Clock& clock_;
  const std::uint64_t identity_;
  std::uint64_t epoch_ = 0;
  std::atomic<std::uint64_t> settled_{0};
  segments::Heads heads_;
  Chain chain_{segments_, heads_};
  device::TurnGap turn_gap_;
  InFlightTable in_flight_;
  Durability durability_;

  Mutex held_mutex_{LockRank::log};
  bool epoch_on_disk_ GUARDED_BY(held_mutex_) = false;
  bool epoch_asked_ GUARDED_BY(held_mutex_) = false;
  bool given_up_ GUARDED_BY(held_mutex_) = false;
  std::vector<std::unique_ptr<Write>> held_ GUARDED_BY(held_mutex_);
  std::function<void()> epoch_wanted_;  // set before there are other threads

  device::Flow flow_;
  const std::size_t most_in_request_;  // blocks
  std::atomic<std::uint64_t> chunks_written_{0}, header_blocks_written_{0}, payload_blocks_written_{0};
};

}  // namespace varve::log
