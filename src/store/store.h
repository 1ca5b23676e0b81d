// Everything a mounted image consists of: log, segments, trees, deltas and inodes, and the steps that carry changes from
// memory to the device: staging (operations), sealing (chunks), checkpoints (trees).
//
// Locks, in this order: gate pass → inodes by number → unsealed_mutex_. Sealing and freezing close the gate instead.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "format/superblock.h"
#include "log/log.h"
#include "log/recovery.h"
#include "store/delta.h"
#include "store/gate.h"
#include "store/inode.h"
#include "store/layers.h"
#include "store/tree_view.h"

namespace varve::store {

struct StoreOptions {
  bool read_only = false;
  bool no_recovery = false;
  bool accept_log_damage = false;  // replay up to the damage: for repairs
  bool drop_lost_inodes = false;   // in the replay, what changes inodes that the trees do not have: for repairs
  bool background = true;
  bool discard = false;
  std::size_t memory_bytes = 256u << 20;
  Clock* clock = &Clock::system();
  Random* random = &Random::system();
};

// What one staging step knows of the block it replaces.
struct StageBlock {
  std::uint64_t block = 0;
  PendingPtr data;
  MappedBlock old;
  bool assume_owned = false;  // old is unknown, but the file is dense there
  std::uint8_t estimate = 0;  // of its interval between rewrites (format/estimate.h)
};

// What an operation is about to add to the next chunk and the next checkpoint, at most.
struct Claim {
  std::size_t record_bytes = 0;  // not more than one chunk holds: recovery believes none that is larger
  std::uint64_t payload = 0;  // blocks
  std::uint64_t places = 0;   // of the inode file that change (Delta::burden)
  std::uint64_t item_bytes = 0;
  bool frees = false;         // may take segments that users leave to it
};

class HoleFeeder;
class Sealer;

class Store {
 public:
  static Result<std::unique_ptr<Store>> open(io::BlockDevice& device, const StoreOptions& options);
  ~Store();

  // --- parts ---
  io::BlockDevice& device() { return device_; }
  log::IoContext& io() { return io_; }
  log::SegmentTable& segments() { return segments_; }
  log::Log& log() { return log_; }
  NodeCache& nodes() { return nodes_; }
  InodeTable& inodes() { return inodes_; }
  Gate& gate() { return gate_; }
  Clock& clock() { return *options_.clock; }
  Random& random() { return *options_.random; }
  const format::Superblock& super() const { return super_; }  // as found by open(): of the rest ask written_super()
  format::Superblock written_super() const;
  const HashKey& hash_key() const { return super_.hash_key; }
  // Only inside the gate (a pass or a closure), or on the thread that runs checkpoints.
  const TreeView& view() const { return *view_; }
  const StoreOptions& options() const { return options_; }

  bool read_only() const { return read_only_.load(std::memory_order_relaxed); }
  std::string read_only_reason() const;
  // From now on nothing is written any more; every waiter gets an error.
  void go_read_only(const Error& why);

  // --- staging: with a gate pass, the inode's lock held exclusively, after admit() ---
  // Lets an operation in. chunk_full: leave the gate, seal(), and try again; no_segment: what it adds might not find the
  // segments to be sealed and merged in, wait for a checkpoint. What is granted is withdrawn before the gate is left:
  // by then it is staged.
  // What is half staged cannot be taken back: if memory is lacking for it, the daemon ends, and the log has what was before.
  enum class Room : std::uint8_t { granted, chunk_full, no_segment };
  Room admit(const Claim& claim);
  void withdraw(const Claim& claim);
  // The first half of it, for the cleaner, which looks for room in another way. False: chunk_full.
  bool reserve_records(std::size_t bytes);
  InodeDelta& stage(Inode& inode, bool created = false) noexcept;  // its active delta, marked for the next chunk
  void stage_attributes(Inode& inode) noexcept;         // after a change of inode.attributes
  void stage_blocks(Inode& inode, std::span<StageBlock> blocks, std::uint32_t clock) noexcept;
  void stage_clear(Inode& inode, std::uint64_t from, std::uint64_t to, Cleared kind, std::int64_t owned_change) noexcept;
  void stage_emptying(Inode& inode) noexcept;  // clears all of it
  void stage_move(Inode& inode, std::uint64_t block, BlockAddr from, BlockAddr to, std::uint32_t crc,
                  std::uint32_t clock, std::uint8_t estimate) noexcept;
  std::uint64_t stage_add_entry(Inode& directory, std::string_view name, Ino ino, std::uint8_t type) noexcept;
  void stage_remove_entry(Inode& directory, std::uint64_t cookie, std::string_view name) noexcept;
  // `set_bytes`: names and values of all its attributes together, after it.
  void stage_xattr(Inode& inode, std::string_view name, std::optional<format::Bytes> value, std::uint64_t set_bytes) noexcept;
  void stage_symlink(Inode& inode, std::string_view target) noexcept;
  void stage_orphan(Inode& inode, bool set) noexcept;
  void stage_free(Inode& inode) noexcept;
  InodePtr create_inode() noexcept;  // a new number, a fresh active delta; attributes are the caller's to fill

  std::uint64_t advance_clock(std::uint64_t blocks) { return clock_.fetch_add(blocks) + blocks; }
  std::uint64_t log_clock() const { return clock_.load(std::memory_order_relaxed); }
  std::uint32_t clock_units(std::uint64_t clock) const { return static_cast<std::uint32_t>(clock / super_.clock_unit); }

  // --- sealing ---
  // Everything acknowledged so far is in chunk <result> or earlier. Does not wait for I/O. Not inside the gate.
  // commit: the caller is about to wait until it is durable. `reactor`: of the calling thread, or null.
  enum class Seal : std::uint8_t { append, commit };
  Result<Lsn> seal(Seal purpose = Seal::append, io::Reactor* reactor = nullptr);
  std::uint64_t unsealed_payload_bytes() const { return unsealed_payload_bytes_.load(std::memory_order_relaxed); }
  bool anything_unsealed() const { return unsealed_since_ns_.load(std::memory_order_relaxed) != 0; }
  // When the oldest operation was acknowledged that no flush will come for by itself: it is in no chunk, or in one that nobody
  // waits for. 0: there is none.
  std::uint64_t unawaited_since_ns();

  // --- checkpoints: one at a time, on one thread ---
  struct CheckpointRequest {
    bool clean = false;                      // unmounting
    std::vector<SegmentId> evacuate;         // rewrite the nodes that stand in these
  };
  Status checkpoint(const CheckpointRequest& request);
  // What the next checkpoint's superblock says of the groups. Any thread.
  using GroupCentres = decltype(format::Superblock::group_centres);
  void set_group_centres(const GroupCentres& centres);
  GroupCentres group_centres() const;
  bool dirty();  // anything not in the settled trees; not inside the gate, like the two below
  // Writes this mount's epoch into the superblocks, which releases the first chunk. Blocks; never beside a checkpoint, whose
  // superblocks it would replace by older ones.
  Status write_epoch();
  bool epoch_due() const { return epoch_due_.load(); }
  void on_epoch_due(std::function<void()> call) { epoch_due_call_ = std::move(call); }
  Serial settled() const { return Serial{settled_.load()}; }
  bool checkpoint_running() const { return checkpoint_running_.load(std::memory_order_relaxed); }
  // Of the first checkpoint that begins from now on: one that is under way may have frozen already.
  Serial next_checkpoint() const {
    const bool running = checkpoint_running_.load();  // asked first: one that ends just now counts as settled
    return settled() + (running ? 2 : 1);
  }
  std::uint64_t delta_records();
  std::uint64_t delta_bytes();
  std::uint64_t log_blocks_since_checkpoint() const;

  // --- space: inside the gate ---
  std::uint64_t capacity_blocks() const;   // of all segments
  std::uint64_t reserve_blocks() const;    // nobody's to fill
  std::uint64_t charged_blocks() const { return charge(Counted::at_worst); }  // what files and metadata take
  std::uint64_t inodes_in_use() const;
  bool has_estimates() const { return frozen_ || active_->records(); }  // the charge may be above the truth
  bool can_charge(std::uint64_t blocks, std::uint64_t inodes) const;
  // The same if everything was there that others have written over without looking it up, or has gone that may have.
  bool can_charge_at_best(std::uint64_t blocks, std::uint64_t inodes) const;
  std::uint64_t change_bytes() const;  // memory of all changes: the active delta and the one being merged
  // They have all the memory that the bound leaves them: a checkpoint cannot keep up with what operations stage.
  bool changes_fill_memory() const { return change_bytes() >= options_.memory_bytes / 8 * 3; }
  struct Moves {  // of the cleaner
    std::uint64_t blocks = 0;  // of files, to the head of `group`
    std::uint64_t places = 0;  // in files that they are from: as many, or fewer where they are neighbours
    std::uint64_t nodes = 0;   // that the checkpoint afterwards is to evacuate
    unsigned group = 0;
    std::uint64_t refilled = 0;  // segments whose holes they go to instead; 0: to the head
  };
  bool may_move(const Moves& moves) const;
  // How many groups beside group 0 may have heads at one time: what is open cannot be filled otherwise, nor cleaned.
  unsigned most_open_groups() const;
  // Where blocks of a group are to be written: at its own head, or at the nearest open one where it has none and may not
  // have one. What is let in is sure to find room at the head of group 0 only.
  unsigned head_for(unsigned group) const;

  // --- holes: used segments whose free blocks are written (log/segment_table.h) ---
  // For users' payload, by the sealer; an empty run when there are none.
  format::Run allocate_in_hole(std::uint32_t blocks);
  // Clean segments beyond those that users, deletes, the cleaner, a running checkpoint and the next one count on. Taking
  // some takes a closed gate.
  std::uint64_t spare_segments() const;
  // Could all that waits go to heads, with nothing taken from what is kept for others?
  bool has_room_without_holes() const;
  // For blocks that a cleaner moves: `run` is of a segment that it has opened, and in flight (SegmentTable) from now on.
  // With the gate closed.
  void hand_out_hole(const format::Run& run);
  HoleFeeder& hole_feeder() { return *hole_feeder_; }

  // Cleaning has emptied a segment, which the next checkpoint frees: until then users may take as much out of what they
  // must leave clean otherwise. By the thread that makes checkpoints.
  void note_emptied() {
    emptied_.fetch_add(1, std::memory_order_relaxed);
    ++counters_.segments_cleaned;
  }
  // Tree nodes in a segment that is being emptied, for the next checkpoint to rewrite: no operation is let in from now on that would
  // take the segments for that. The freeze takes over what has been planned.
  void plan_evacuation(std::uint64_t nodes) { planned_evacuation_ += nodes; }
  void cancel_evacuation(std::uint64_t nodes);
  // Was there room to evacuate all that the last checkpoint which was asked to should have?
  bool evacuation_was_cut() const { return evacuation_was_cut_; }

  // --- not inside the gate ---
  std::uint64_t low_water();  // with fewer clean segments than this, users wait
  bool relief_is_due();       // a checkpoint would let operations in that soon must wait for one
  // Calls `ready` after the next checkpoint has settled, or was found to be pointless with no discards in flight.
  void when_settled(std::function<void()> ready);
  void wake_waiters();
  // For want of space: nothing is to be released. Waiters are told when the last segment that is being discarded has come.
  void note_pointless_round() {
    ++pointless_rounds_;
    if (!segments_.discarding()) wake_waiters();
  }
  void discarded(SegmentId first, std::uint64_t count);  // neighbours; any thread
  // How often space has been looked for so far: those times, and checkpoints. Any thread.
  std::uint64_t space_rounds() const { return settled_.load() + pointless_rounds_.load(); }

  format::LifetimeCounters lifetime() const;
  struct Counters {
    std::atomic<std::uint64_t> user_blocks{0}, cleaned_blocks{0}, cleaned_blocks_read{0}, node_blocks{0},
        segments_cleaned{0}, checkpoints{0},
        refilled_blocks{0},   // handed out in holes, to users and to the cleaner
        unforeseen_nodes{0};  // written by checkpoints beyond what was reckoned with: none, if headroom.cc is right
  };
  Counters& counters() { return counters_; }
  std::uint64_t replayed_chunks() const { return replayed_chunks_; }
  void note_error(Errc code, BlockAddr address, Ino ino);
  std::pair<format::ErrorEvent, format::ErrorEvent> errors() const;
  // How far a scrub has come; the next checkpoint writes it.
  void set_scrub_mark(const format::ScrubMark& mark);
  format::ScrubMark scrub_mark() const;

 private:
  friend class Checkpoint;
  friend class Sealer;
  friend class HoleFeeder;
  Store(io::BlockDevice& device, const StoreOptions& options, const format::Superblock& super);
  Status load_segments();
  Status start(bool copies_equal);
  void choose_reserve();
  bool wants_discard();
  void start_discards(const std::vector<SegmentId>& freed);
  void uncharge(const Inode& inode, std::uint64_t owned);
  enum class Counted { at_worst, at_best };
  std::uint64_t charge(Counted counted) const;
  bool has_uncharged(Counted counted, std::uint64_t blocks, std::uint64_t inodes) const;
  void for_each_delta(const std::function<void(const Delta&)>& visit) const;
  struct Burden {  // of a checkpoint (headroom.h)
    std::uint64_t places = 0, item_bytes = 0, blocks = 0, evacuated = 0, scattered = 0;
  };
  Burden active_burden() const;
  std::uint64_t merge_need(const Burden& burden) const;  // blocks it writes
  // Segments that must be clean for a seal and a checkpoint, should there be so much more in the active delta.
  std::uint64_t kept_segments(const Burden& more) const;
  bool may_open_group() const;
  std::uint64_t waiting_payload() const;  // blocks let in and in no chunk yet
  std::uint64_t room_for_users() const;   // at the head of group 0 and in holes
  bool admits_users_into_holes(const Burden& more) const;  // if so much were added
  std::uint64_t kept_when_idle() const;
  std::uint64_t lent_segments() const;    // that users may take before they are free
  std::uint64_t merge_need_at_freeze(std::uint64_t evacuated) const;
  bool has_room_to_evacuate(std::uint64_t nodes) const;
  void promise_nodes(std::uint64_t evacuated);
  InodeDelta& active_delta(Inode& inode, bool created);
  void drop_place(const BlockPlace& place);
  // With checkpoint_mutex_ held, or before there are threads:
  Status write_epoch_if_due();
  Status write_superblocks(const format::Superblock& super);

  log::IoContext io_;
  io::BlockDevice& device_;
  const StoreOptions options_;
  const format::Superblock super_;  // as found
  mutable Mutex written_super_mutex_;
  format::Superblock written_super_ GUARDED_BY(written_super_mutex_);
  log::SegmentTable segments_;
  log::Log log_;
  NodeCache nodes_;
  InodeTable inodes_;
  Gate gate_;

  std::unique_ptr<HoleFeeder> hole_feeder_;
  std::unique_ptr<Sealer> sealer_;
  std::unique_ptr<const TreeView> view_;
  std::unique_ptr<Delta> active_;
  std::unique_ptr<Delta> frozen_;
  std::atomic<std::uint64_t> clock_{0}, next_ino_{2};

  Mutex unsealed_mutex_;
  std::vector<InodeDelta*> unsealed_;  // under unsealed_mutex_ inside the gate; the thread that has closed it is alone
  std::vector<PendingPtr> unsealed_payload_;  // the same
  std::atomic<std::size_t> reserved_records_{0};
  std::atomic<std::uint64_t> admitted_places_{0}, admitted_item_bytes_{0}, admitted_payload_{0};  // not yet staged
  std::uint64_t users_reserve_ = 0;  // segments that users leave clean, at least
  std::uint64_t frozen_nodes_ = 0;  // what the running checkpoint writes, at most
  std::atomic<std::uint64_t> emptied_{0};          // segments, by cleaning, since the last checkpoint
  std::atomic<std::uint64_t> planned_evacuation_{0};  // nodes
  std::atomic<bool> evacuation_was_cut_{false};
  std::atomic<std::uint64_t> usual_nodes_{0};      // blocks that the last checkpoint wrote
  std::atomic<std::uint64_t> unsealed_payload_bytes_{0}, unsealed_since_ns_{0};

  Mutex checkpoint_mutex_;  // for a thread that writes superblocks, and first looks what is in them
  std::atomic<bool> checkpoint_running_{false}, epoch_due_{false}, read_only_{false};
  std::function<void()> epoch_due_call_;
  std::atomic<std::uint64_t> settled_{0}, pointless_rounds_{0};
  format::Run node_head_;  // changed with the gate closed
  std::atomic<std::uint64_t> log_blocks_at_checkpoint_{0};
  std::uint64_t replayed_chunks_ = 0;

  mutable Mutex waiters_mutex_;
  std::vector<std::function<void()>> settled_waiters_ GUARDED_BY(waiters_mutex_);
  std::string read_only_reason_ GUARDED_BY(waiters_mutex_);
  format::LifetimeCounters super_at_mount_;
  format::ErrorEvent first_error_ GUARDED_BY(waiters_mutex_), last_error_ GUARDED_BY(waiters_mutex_);
  format::ScrubMark scrub_mark_ GUARDED_BY(waiters_mutex_);
  GroupCentres group_centres_ GUARDED_BY(waiters_mutex_);
  std::uint64_t errors_ GUARDED_BY(waiters_mutex_) = 0;
  Counters counters_;
};

}  // namespace varve::store
