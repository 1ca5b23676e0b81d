// Builds one chunk from everything that waits: gives payload its addresses, encodes the net effect as records.
// Used with the gate closed. One for a store, which keeps its memory from seal to seal.
#pragma once

#include <span>
#include <vector>

#include "base/gate.h"
#include "changes/staging.h"

namespace varve::device {
class Faults;
}

namespace varve::io {
class Reactor;
}

namespace varve::log {
class Log;
struct ChunkPlace;
struct ChunkStamp;
}  // namespace varve::log

namespace varve::segments {
class LogClock;
class SegmentTable;
}  // namespace varve::segments

namespace varve::space {
class HoleFeeder;
class Space;
}  // namespace varve::space

namespace varve::checkpoint {

class Sealer {
 public:
  struct Parts {
    segments::SegmentTable& segments;
    log::Log& log;
    const segments::LogClock& log_clock;
    changes::Staging& staging;
    space::Space& space;
    const space::HoleFeeder& hole_feeder;
    const device::Faults& faults;
  };
  explicit Sealer(const Parts& parts) : parts_(parts) {}
  // What is half sealed cannot be taken back: if memory is lacking for it, the daemon ends, and the log has what was before.
  // `reactor`: of the calling thread, or null.
  Result<Lsn> run(bool commit, io::Reactor* reactor) noexcept REQUIRES(the_gate);
  // Before a checkpoint freezes, or heads are given up: tails in the log that are too long for the trees become payload of the next chunk.
  void give_blocks_to_tails() REQUIRES(the_gate);
  log::ChunkStamp stamp() const;  // of the next chunk
  // Operations are promised room for the most that they may write; much of it is never needed, since later ones change the same
  // inodes and take away what earlier ones have made. Counts what a seal would write now, and takes the rest of the promises back.
  // False: it would be worth little, the chunk is full.
  bool make_room_for_records() noexcept REQUIRES(the_gate);

 private:
  using Payload = std::vector<changes::PendingPtr>;

  changes::Unsealed& unsealed() { return parts_.staging.unsealed(); }
  void collect(bool commit) REQUIRES(the_gate);
  bool may_log(std::size_t bytes, std::size_t blocks) const;
  void write_to_heads(bool commit) REQUIRES(the_gate);
  static std::size_t piece_of(std::span<const changes::PendingPtr> blocks);
  format::Run allocate(unsigned group, std::span<const changes::PendingPtr> blocks) REQUIRES(the_gate);
  bool place_group(unsigned group, Payload& blocks) REQUIRES(the_gate);
  void settle_address(changes::PendingBlock& block, BlockAddr address);
  // At one place: in the chunk, or in chunks without records in front of it.
  bool stays_in_chain() const REQUIRES(the_gate);
  void put_in_chain() REQUIRES(the_gate);
  Status write_carriers() REQUIRES(the_gate);
  Lsn write_at(const log::ChunkPlace& place, std::span<const std::byte> records, bool commit) REQUIRES(the_gate);
  Status write_chunk(Lsn& lsn, bool in_chain, bool commit) REQUIRES(the_gate);
  void encode_inode(changes::InodeDelta& delta);
  void encode_moves(changes::InodeDelta& delta);
  void encode_maps(const Payload& payload, format::Bytes& out, bool with_addresses);
  void encode_tails() REQUIRES(the_gate);
  void keep_tails() REQUIRES(the_gate);
  void clear_marks() REQUIRES(the_gate);
  void keep_unplaced() REQUIRES(the_gate);
  void forget();

  const Parts parts_;
  io::Reactor* reactor_ = nullptr;
  std::vector<Payload> groups_;  // by temperature
  Payload inline_, placed_;      // placed_: has its address
  Payload tails_;                // as bytes of records
  std::vector<log::PayloadPtr> payload_;
  format::Bytes records_, measured_;
  format::Record map_{format::MapBlocks{}};
};

}  // namespace varve::checkpoint
