#include "store/store.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "format/record.h"
#include "io/first_exception.h"
#include "store/checkpoint.h"
#include "store/replay.h"
#include "store/sealer.h"
#include "store/superblocks.h"
#include "store/hole_feeder.h"

namespace varve::store {

namespace {

// Shares of the memory bound.
constexpr std::size_t node_cache_bytes(std::size_t memory) { return memory / 5; }
constexpr std::size_t inode_count(std::size_t memory) { return memory / 16 / 512; }

}  // namespace

Store::Store(io::BlockDevice& device, const StoreOptions& options, const format::Superblock& super)
    : io_(device, options.background),
      device_(io_.device()),
      options_(options),
      super_(super),
      written_super_(super),
      segments_({super.first_segment, super.segment_blocks, super.segments}),
      log_(io_, segments_, super.identity, *options.clock, options.memory_bytes / 16),
      nodes_(super.identity, node_cache_bytes(options.memory_bytes)),
      inodes_(inode_count(options.memory_bytes)) {
  read_only_ = options.read_only;
  clock_ = super.clock;
  next_ino_ = super.next_ino;
  settled_ = super.serial.v;
  node_head_ = super.node_head.rest;
  group_centres_ = super.group_centres;
  log_.clock_hint = super.clock;
  first_error_ = super.first_error;
  last_error_ = super.last_error;
  scrub_mark_ = super.scrub;
  super_at_mount_ = super.lifetime;
  auto view = std::make_unique<TreeView>();
  view->serial = super.serial;
  view->segments = segments_.geometry();
  view->inode_file = {super.inode_file, super.inode_file_level};
  view->reverse_map = {super.reverse_map, format::TreeId::reverse_map, format::reverse_map_shape(super.device_blocks)};
  view->free_map = {super.free_map, format::TreeId::free_map, format::free_map_shape(super.segments, super.segment_blocks)};
  view->live_blocks = super.live_blocks;
  view->data_blocks = super.data_blocks;
  view->reserved_blocks = super.reserved_blocks;
  view->inodes = super.inodes;
  view_ = std::move(view);
  active_ = std::make_unique<Delta>(segments_.generation());
  hole_feeder_ = std::make_unique<HoleFeeder>(*this);
  sealer_ = std::make_unique<Sealer>(*this);
  choose_reserve();
}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(io::BlockDevice& device, const StoreOptions& options) {
  // The first checkpoint would make the log's loss final.
  if (options.no_recovery && !options.read_only)
    return Error(Errc::invalid, fmt::format("{}: norecovery shows the last checkpoint without what the log holds since then, so it "
                                            "needs ro", device.name()));
  const Superblocks found = TRY(read_superblocks(device));
  const auto intent = options.read_only ? format::Intent::read : format::Intent::write;
  TRY(format::check_features(found.best, intent));
  if (!options.read_only && device.read_only())
    return Error(Errc::read_only, fmt::format("{} cannot be written: mount it with -o ro", device.name()));
  std::unique_ptr<Store> store(new Store(device, options, found.best));
  TRY(store->load_segments());
  TRY(store->start(found.equal));
  return store;
}

Status Store::load_segments() {
  BlockingSource source(nodes_, device_, false);
  const std::size_t record_bytes = view_->free_map.shape.record_bytes;
  TRY(scan_map(source, view_->free_map, [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
    for (std::uint64_t i = 0; i < view_->free_map.shape.per_leaf() && first + i < super_.segments; ++i) {
      const auto record = TRY(format::decode_segment_record(records.subspan(i * record_bytes, record_bytes)));
      segments_.load(SegmentId{first + i}, record);
    }
    return {};
  }));
  const auto& geometry = segments_.geometry();
  auto open_run = [&](const format::Run& run, std::uint8_t group) {
    if (run.blocks) segments_.set_open(geometry.segment_of(run.start), group);
  };
  if (super_.clean) {
    open_run(super_.chain, format::kGroupChain);
    open_run(super_.next_run, format::kGroupChain);
    open_run(super_.node_head.rest, format::kGroupNodes);
    for (unsigned g = 0; g < format::kMaxGroups; ++g) {
      open_run(super_.heads[g].rest, static_cast<std::uint8_t>(g));
      log_.set_head(g, super_.heads[g].rest);
    }
  } else {
    for (const format::Run& run : {super_.chain, super_.next_run})
      if (run.blocks) segments_.occupy(geometry.segment_of(run.start));
    node_head_ = {};
  }
  return {};
}

Status Store::start(bool copies_equal) {
  if (!options_.read_only && std::max({super_.serial.v, super_.lsn.v, super_.clock}) > format::kMostCount)
    return Error(Errc::out_of_range, fmt::format("{}: its counters are used up (checkpoint {}, chunk {}, log clock {}): mount it "
                                                 "with -o ro and copy what it holds to a new filesystem",
                                                 device_.name(), super_.serial, super_.lsn, super_.clock));
  // A crash between the two writes leaves an older copy: it is made good before anything is handed out (H26), but only
  // once the log agrees that this superblock is the newest (H27).
  auto make_equal = [&]() -> Status {
    if (options_.read_only || copies_equal) return {};
    return write_superblocks(written_super());
  };
  if (super_.clean || options_.no_recovery) {
    TRY(make_equal());
    segments_.finish_loading();
    log_.start({super_.chain, super_.next_run, super_.lsn, super_.chain_crc}, options_.random->next(), false);
  } else {
    Replay replay(*this, *active_);
    const log::Recovered recovered =
        TRY(log::recover_chain(device_, super_, [&](const format::Chunk& chunk) { return replay.apply(chunk); },
                               {.accept_damage = options_.accept_log_damage}));
    if (options_.drop_lost_inodes) TRY(replay.drop_lost_inodes());
    TRY(make_equal());
    if (options_.read_only) replay.count();
    segments_.finish_loading();
    replayed_chunks_ = recovered.chunks;
    clock_ = log_.clock_hint = recovered.clock;
    next_ino_ = std::max(next_ino_.load(), recovered.next_ino);
    log::ChainPosition position{{}, {}, recovered.position.lsn, recovered.position.crc};
    if (!options_.read_only) {
      // The run after it is found when the first chunk is placed: the checkpoint to come has first claim to segments.
      const auto id = segments_.take(format::kGroupChain);
      if (!id) return Error(Errc::no_space, "no clean segment left to recover into");
      position.rest = {segments_.geometry().start_of(*id), super_.segment_blocks};
    }
    log_.start(position, options_.random->next(), true);
  }
  log_.on_epoch_wanted([this] {
    epoch_due_ = true;
    if (epoch_due_call_) epoch_due_call_();
  });
  log_.durability().on_failure([this](const Error& error) { go_read_only(error); });
  if (options_.read_only || super_.clean) return {};
  spdlog::info("{}: recovered {} chunks of the log", device_.name(), replayed_chunks_);
  {
    const Lock lock(written_super_mutex_);
    ++written_super_.lifetime.recoveries;
  }
  return checkpoint({});
}

// --- sealing --------------------------------------------------------------------------------------------------------

Result<Lsn> Store::seal(Seal purpose, io::Reactor* reactor) {
  Result<Lsn> lsn = Errc::read_only;
  {
    const Gate::Closure closed(gate_);
    if (read_only()) return Error(Errc::read_only, read_only_reason());
    lsn = sealer_->run(purpose == Seal::commit, reactor);
  }
  if (!lsn.ok()) go_read_only(lsn.error());
  if (read_only()) log_.give_up();  // it may have become so with the gate closed
  if (epoch_due() && !io_.background()) TRY(write_epoch());
  return lsn;
}

// A seal hands the time over to its chunk before it forgets it, so it is looked for in this order. What is in a chunk is older.
std::uint64_t Store::unawaited_since_ns() {
  const std::uint64_t unsealed = unsealed_since_ns_;
  const std::uint64_t sealed = log_.durability().unawaited_since_ns();
  return sealed ? sealed : unsealed;
}

Status Store::write_epoch() {
  const Lock one(checkpoint_mutex_);
  return write_epoch_if_due();
}

Status Store::write_epoch_if_due() {
  if (!epoch_due_) return {};
  format::Superblock super = written_super();
  super.epoch = log_.epoch();
  super.clean = false;
  ++super.lifetime.mounts;
  if (Status status = write_superblocks(super); !status.ok()) {
    log_.durability().fail(status.error());
    return status;
  }
  epoch_due_ = false;
  log_.epoch_written();
  return {};
}

Status Store::write_superblocks(const format::Superblock& super) {
  TRY(store::write_superblocks(device_, super, [this] { return log_.durability().flush_now(); }));
  const Lock lock(written_super_mutex_);
  written_super_ = super;
  return {};
}

format::Superblock Store::written_super() const {
  const Lock lock(written_super_mutex_);
  return written_super_;
}

// --- checkpoints ------------------------------------------------------------------------------------------------------

Status Store::checkpoint(const CheckpointRequest& request) {
  Status status;
  {
    const Lock one(checkpoint_mutex_);
    if (read_only()) return Error(Errc::read_only, read_only_reason());
    checkpoint_running_ = true;
    status = Checkpoint(*this, request).run();
    checkpoint_running_ = false;
  }
  if (!status.ok()) go_read_only(status.error());
  if (read_only()) log_.give_up();
  wake_waiters();
  return status;
}

void Store::wake_waiters() {
  std::vector<std::function<void()>> waiters;
  {
    const Lock lock(waiters_mutex_);
    waiters.swap(settled_waiters_);
  }
  io::call_for_all(waiters, [](auto& ready) { ready(); });
}

void Store::when_settled(std::function<void()> ready) {
  {
    const Lock lock(waiters_mutex_);
    if (read_only_reason_.empty()) {
      settled_waiters_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

std::uint64_t Store::delta_records() {
  const Gate::Pass pass(gate_);
  return active_->records();
}

std::uint64_t Store::delta_bytes() {
  const Gate::Pass pass(gate_);
  return active_->bytes();
}

bool Store::dirty() { return anything_unsealed() || delta_records() > 0; }

std::uint64_t Store::log_blocks_since_checkpoint() const {
  const std::uint64_t before = log_blocks_at_checkpoint_;  // first: all of them only grow, and a checkpoint may freeze meanwhile
  return log_.header_blocks() + log_.payload_blocks() - before;
}

// --- faults ---------------------------------------------------------------------------------------------------------------

void Store::go_read_only(const Error& failure) {
  const std::string refusal = device_.refusal();  // the cause, of which this failure may be only the first sign
  const Error why = refusal.empty() ? failure : Error(failure.code(), refusal);
  {
    const Lock lock(waiters_mutex_);
    if (!read_only_reason_.empty()) return;
    read_only_reason_ = why.message();
  }
  read_only_ = true;
  log_.durability().fail(why);
  log_.give_up();
  wake_waiters();  // no checkpoint comes any more
  spdlog::error("{}: read-only from now on: {}", device_.name(), why.message());
  note_error(why.code(), {}, {});
}

std::string Store::read_only_reason() const {
  const Lock lock(waiters_mutex_);
  return !read_only_reason_.empty() ? read_only_reason_
                                    : fmt::format("{} is mounted read-only", device_.name());
}

void Store::note_error(Errc code, BlockAddr address, Ino ino) {
  const Lock lock(waiters_mutex_);
  const format::ErrorEvent event{options_.clock->now(), static_cast<std::uint32_t>(code), address, ino};
  if (!first_error_.when.seconds) first_error_ = event;
  last_error_ = event;
  ++errors_;
}

std::pair<format::ErrorEvent, format::ErrorEvent> Store::errors() const {
  const Lock lock(waiters_mutex_);
  return {first_error_, last_error_};
}

void Store::set_group_centres(const GroupCentres& centres) {
  const Lock lock(waiters_mutex_);
  group_centres_ = centres;
}

Store::GroupCentres Store::group_centres() const {
  const Lock lock(waiters_mutex_);
  return group_centres_;
}

void Store::set_scrub_mark(const format::ScrubMark& mark) {
  const Lock lock(waiters_mutex_);
  scrub_mark_ = mark;
}

format::ScrubMark Store::scrub_mark() const {
  const Lock lock(waiters_mutex_);
  return scrub_mark_;
}

format::LifetimeCounters Store::lifetime() const {
  format::LifetimeCounters sum = super_at_mount_;
  {
    const Lock lock(waiters_mutex_);
    sum.errors += errors_;
  }
  const Lock lock(written_super_mutex_);
  sum.mounts = written_super_.lifetime.mounts;
  sum.recoveries = written_super_.lifetime.recoveries;
  sum.checkpoints = written_super_.lifetime.checkpoints;
  sum.user_blocks += counters_.user_blocks;
  sum.cleaned_blocks += counters_.cleaned_blocks;
  sum.node_blocks += counters_.node_blocks;
  sum.chain_blocks += log_.header_blocks();
  sum.segments_cleaned += counters_.segments_cleaned;
  sum.device_bytes += io_.counts()[io::IoKind::write].bytes;
  return sum;
}

}  // namespace varve::store
