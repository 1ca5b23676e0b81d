// The one primitive of cleaning: read, verify, carry the stored CRC, write, then, if the block is still there, log the
// move (H34, H35). A bad block, one that cannot be read or is damaged, is not moved; it pins its segment and is reported.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cleaner/bad_blocks.h"
#include "io/batch.h"
#include "io/sparse_read.h"
#include "tree/node_cache.h"

namespace varve::changes {
struct Layers;
}

namespace varve::store {
class Store;
}

namespace varve::cleaner {

// A file block that stood at `address` in the last merged checkpoint.
struct LiveBlock {
  BlockAddr address;
  Ino ino;
  std::uint64_t block = 0;
  std::uint32_t clock = 0;
  std::uint32_t crc = 0;
  std::uint8_t estimate = 0;
  std::uint8_t group = 0;  // where it is to go

  // What snapshots hold is not in the newest trees, or about to be no more: no file says where it stands (snapshots/snapshots.h).
  bool held = false;
  bool shared = false;     // with held: the newest trees have it until the next checkpoint
  bool is_node = false;    // with held; then inode and file block are none
  std::uint8_t level = 0;  // of a node
  Serial birth{};          // of a node
};

// Or do these say that it has been replaced, removed or moved since?
bool still_there(const changes::Layers& layers, const LiveBlock& block);

// A block and the hole that it goes to.
struct Plug {
  LiveBlock block;
  BlockAddr to;
};

// What becomes of sound blocks that are to be moved together with bad ones.
enum class Sound : std::uint8_t { moved, left };

class Mover {
 public:
  static constexpr std::size_t kUsualBuffer = 1024;  // blocks; less where memory is bounded tightly

  // `buffer`: blocks in memory at one time. `known`: bad blocks that need not be reported again.
  explicit Mover(store::Store& store, std::size_t buffer = kUsualBuffer, BadBlocks* known = nullptr);

  std::size_t buffer() const { return buffer_; }
  // The file blocks of a segment, by the maps of the newest checkpoint and without those that a delta has replaced. An error
  // also where only the part of the reverse map that has nothing live cannot be read: nothing new must come there.
  Result<std::vector<LiveBlock>> live_blocks(SegmentId segment);
  // How many tree nodes of the newest trees live in the segment that was asked for last.
  std::uint64_t nodes_beside() const { return nodes_beside_; }
  // Moves them, in ascending order of address, to the heads of their groups, or of others where there is none
  // (Store::head_for). Errc::no_space: the checkpoint that follows, with what it is to evacuate (Store::plan_evacuation), could run
  // out of segments. `stop`, if there is one, is asked before each request that reads: when it says so, what has not been read stays.
  Status move(std::span<const LiveBlock> blocks, Sound beside_bad = Sound::moved, const std::function<bool()>& stop = {});
  // Moves them into holes of segments that the caller has opened (SegmentTable::open_holes), whatever their groups; no two
  // to one place. The rest as above. Needs room in clean segments only for the metadata that comes of it.
  // In small lots: between these it stops when `stop`, if there is one, says so.
  Status plug(std::span<const Plug> plugs, const std::function<bool()>& stop = {});
  // What writes into holes cost is to be found out by those in between: each lot is flushed, since a cache would hide it, and the first
  // are single blocks. Where these take long already that is known, and no more need be tried (device/write_cost.h).
  void begin_trial() { trial_ = Trial(); }
  void end_trial() { trial_.reset(); }
  std::uint64_t plugged() const { return plugged_; }  // blocks that went into holes, in all
  bool stopped() const { return stopped_; }  // the last plug or move, before its end
  // How many blocks of the last move or plug stay where they are because they are bad.
  std::size_t bad() const { return bad_; }
  // Can anything be read? If not, a block that cannot says nothing about itself.
  bool device_answers() const;

 private:
  static constexpr std::size_t kMostWritten = 64;   // by one request: others wait behind it
  struct ReadBlock {
    const LiveBlock* block;
    const std::byte* bytes;
  };
  // Of blocks by the reverse map: those that live, and those that snapshots hold.
  Status sort_out_held(std::vector<LiveBlock>& blocks);
  bool is_kept(const LiveBlock& block) const;
  Status look_at_node(BlockAddr address, std::uint8_t level, std::vector<LiveBlock>& held);
  Status move_batch(std::span<const LiveBlock> blocks, const std::function<bool()>& stop);
  Result<std::vector<ReadBlock>> read_sound_ones(std::span<const LiveBlock> blocks, io::SparseRead& read,
                                                 const std::function<bool()>& stop = {});
  Result<std::unordered_map<const LiveBlock*, Errc>> unnamed_of(std::span<const LiveBlock> blocks);
  void note_bad(const LiveBlock& block, Errc what, std::string_view is);
  Status write_some(std::span<const ReadBlock> blocks, std::vector<ReadBlock>::iterator& next);
  Status plug_batch(std::span<const Plug> plugs, const std::function<bool()>& stop);
  Status hand_out(std::span<const Plug> plugs);
  // Adds to the batch: to to…, of which all has been handed out.
  void add_write(BlockAddr to, std::span<const ReadBlock> blocks);
  // Carries the batch out, which writes so many blocks.
  Result<std::uint64_t> run_batch(std::size_t blocks, bool is_trial);  // how long it took the device, ns
  Status write_batch(std::size_t blocks);
  Status apply(const LiveBlock& block, BlockAddr to);
  Status apply_held(const LiveBlock& block, BlockAddr to);
  bool is_replaced(const LiveBlock& block) const;
  std::size_t plugs_at_once() const;
  Status write_on_trial(std::size_t blocks);
  // Has `one` move a bufferful after the other, or lots of plugs_at_once(), and notes what that took beside the writes
  // (device/write_cost.h).
  template <class Item>
  Status in_batches(std::span<const Item> items, Status (Mover::*one)(std::span<const Item>, const std::function<bool()>&), bool small_lots,
                    const std::function<bool()>& stop);

  store::Store& store_;
  const std::size_t buffer_;
  tree::BlockingSource source_;
  io::Batch batch_;
  BadBlocks* const known_;
  Sound beside_bad_ = Sound::moved;
  std::size_t bad_ = 0;
  bool stopped_ = false;
  std::uint64_t nodes_beside_ = 0, plugged_ = 0;
  std::uint64_t look_up_ns_ = 0, write_ns_ = 0;  // of the device, since the last move
  struct Trial {
    bool singly = true;
    std::uint64_t slow = 0, least_ns = ~std::uint64_t{0};  // single blocks that took long; the quickest of them
  };
  std::optional<Trial> trial_;
};

}  // namespace varve::cleaner
