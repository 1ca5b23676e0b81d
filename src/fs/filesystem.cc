#include "fs/filesystem.h"

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/logging.h"
#include "base/wait_list.h"
#include "changes/changes.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "checkpoint/superblock_keeper.h"
#include "cleaner/cleaner.h"
#include "cleaner/placement.h"
#include "cleaner/strategy.h"
#include "cleaner/victim_rule.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "io/trace_device.h"
#include "jobs/jobs.h"
#include "log/log.h"
#include "operation/attempt.h"
#include "scrub/scrubber.h"
#include "segments/counters.h"
#include "snapshots/snapshots.h"
#include "space/charge.h"
#include "space/space.h"

namespace varve::fs {

namespace {

void fill_segments(FilesystemStatus& status, store::Store& store) {
  const std::uint32_t blocks = store.segments().geometry().blocks;
  status.segment_blocks = blocks;
  status.segments.total = store.segments().geometry().count;
  std::uint64_t used_blocks = 0, live_in_used = 0;
  std::map<std::uint8_t, GroupCounts> groups;
  store.segments().for_each([&](SegmentId, const segments::SegmentInfo& s) {
    if (s.state == segments::SegmentState::clean || s.state == segments::SegmentState::discarding) {
      ++status.segments.clean;
      return;
    }
    if (s.state == segments::SegmentState::leaving) {
      ++status.segments.empty;
      return;
    }
    used_blocks += blocks;
    live_in_used += s.live();
    GroupCounts& group = groups[s.group];
    ++group.segments;
    group.live_blocks += s.live();
    group.open |= s.state == segments::SegmentState::open;
    if (segments::is_open(s.state)) {
      ++status.segments.open;
      status.segments.refilling += s.state == segments::SegmentState::refilling;
      return;
    }
    const bool empty = s.live() == 0;
    ++(empty ? status.segments.empty : status.segments.used);
    if (empty) status.reclaimable_blocks += blocks;
  });
  for (auto& [number, group] : groups) {
    group.group = number;
    status.groups.push_back(group);
  }
  status.utilisation = cleaner::utilisation_of(store.segments());
  status.live_blocks = live_in_used;
  status.garbage_blocks = used_blocks - std::min(used_blocks, live_in_used);
}

void fill_log(FilesystemStatus& status, store::Store& store) REQUIRES_SHARED(the_gate);
void fill_log(FilesystemStatus& status, store::Store& store) {
  status.lsn = store.log().position().lsn.v;
  status.durable_lsn = store.log().durability().durable().v;
  status.chunks = store.log().chunks();
  status.flushes = store.io().counts().flushes();
  status.pending_bytes = store.staging().unsealed().payload_bytes() + store.log().flow().bytes();
  status.log_bytes_since_checkpoint = store.checkpoints().log_blocks_since() << kBlockShift;
  status.serial = store.checkpoints().settled().v;
  status.checkpoints = store.counters().checkpoints;
  status.checkpoint_running = store.checkpoints().running();
  status.replayed_chunks = store.counters().replayed_chunks;
}

double cost(std::uint64_t user, std::uint64_t rest) {
  return user ? static_cast<double>(user + rest) / static_cast<double>(user) : 0;
}

void fill_traffic(FilesystemStatus& status, store::Store& store) {
  const io::TraceCounts io = store.io().counts();
  const auto& counters = store.counters();
  status.user_blocks_written = counters.user_blocks;
  status.data_blocks_written = store.log().payload_blocks();
  status.chain_blocks_written = store.log().header_blocks();
  status.node_blocks_written = counters.node_blocks;
  status.cleaned_blocks_written = counters.cleaned_blocks;
  status.refilled_blocks_written = counters.refilled_blocks;
  status.cleaned_blocks_read = counters.cleaned_blocks_read;
  status.segments_cleaned = counters.segments_cleaned;
  status.device_bytes_written = io[io::IoKind::write].bytes;
  status.device_bytes_read = io[io::IoKind::read].bytes;
  status.device_writes = io[io::IoKind::write].requests;
  status.device_reads = io[io::IoKind::read].requests;
  status.device_read_errors = io[io::IoKind::read].errors;
  status.device_write_errors = io[io::IoKind::write].errors + io[io::IoKind::flush].errors;
  status.lifetime = store.checkpoints().lifetime();
  status.write_cost = cost(status.user_blocks_written, status.cleaned_blocks_written + status.node_blocks_written +
                                                           status.chain_blocks_written);
  status.lifetime_write_cost =
      cost(status.lifetime.user_blocks,
           status.lifetime.cleaned_blocks + status.lifetime.node_blocks + status.lifetime.chain_blocks);
}

}  // namespace

Filesystem::Filesystem(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

Filesystem::~Filesystem() = default;

Result<std::unique_ptr<Filesystem>> Filesystem::mount(io::BlockDevice& device, const Options& options) {
  store::StoreOptions store_options;
  store_options.read_only = options.read_only;
  store_options.no_recovery = options.no_recovery;
  store_options.snapshot = options.snapshot;
  store_options.accept_log_damage = options.accept_log_damage;
  store_options.must_write = options.must_write;
  store_options.drop_lost_inodes = options.drop_lost_inodes;
  store_options.background = options.background;
  store_options.discard = options.discard;
  store_options.memory_bytes = options.memory_bytes;
  store_options.streams = options.streams;
  store_options.chunk_gap = options.chunk_gap;
  store_options.tails = options.tails;
  store_options.clock = options.clock;
  store_options.random = options.random;
  TRY(cleaner::VictimRule::make(options.victims));  // before anything is recovered or written
  TRY(cleaner::make_placement(options.placement, {}));
  TRY(cleaner::make_strategy(options.strategy));
  auto store = TRY(store::Store::open(device, store_options));
  auto made = TRY(cleaner::Cleaner::make(*store, {options.strategy, options.victims, options.placement}));
  auto engine = std::make_unique<Engine>(std::move(store), std::move(made), options);
  engine->store().protection().set(options.protection);
  engine->jobs().start();
  std::unique_ptr<Filesystem> filesystem(new Filesystem(std::move(engine)));
  if (!filesystem->read_only()) TRY(filesystem->reap_orphans());
  filesystem->drop_passing_snapshots();
  filesystem->begin_protection();
  return filesystem;
}

// Its checkpoints may be the first to meet damage in the tables of snapshots. Where a node cannot be read that lists some, they keep their
// room until fsck has been here.
Status Filesystem::reap_orphans() {
  const Status reaped = engine_->jobs().reaper().reap_orphans();
  if (reaped.ok()) return {};
  const bool lacks_room = reaped.fails_with(Errc::no_space);  // of the host
  const bool is_shown = read_only() && (lacks_room || !engine_->store().snapshots().damage().ok());
  if (!is_shown && !tree::is_of_one_node(reaped.error())) return reaped;
  log_error("files without a name keep their room: {}", reaped.error().message());
  return {};
}

void Filesystem::limit_wait_for_room() {
  engine_->store().device().limit_holding(engine_->options().host_patience_ms * 1'000'000ULL);
}

// The log has all that was acknowledged, whatever comes of the trees.
Status Filesystem::sync_all() {
  Operation operation(engine_->operations(), {});
  Status synced;
  do synced = block_on(operation, [&] { return sync(operation); });
  while (synced.fails_with(Errc::host_full));  // until there is room, or the device has failed for want of it
  return synced;
}

Status Filesystem::unmount() {
  store::Store& store = engine_->store();
  limit_wait_for_room();
  Status status;
  engine_->scrubber().end();
  engine_->jobs().clean_job().end();
  engine_->jobs().resize_job().end();
  if (!store.faults().read_only()) {
    status = engine_->jobs().reaper().reap_orphans();
    const Status synced = sync_all();
    if (status.ok()) status = synced;
  }
  engine_->jobs().scheduler().stop();
  engine_->jobs().resize_job().abandon();
  if (store.faults().read_only()) {
    engine_->jobs().stop();
    if (engine_->options().read_only) return {};
    return store.faults().refusal();
  }
  const format::Superblock written = store.superblocks().written();
  const bool scrubbed = store.superblocks().scrub_mark() != written.scrub;
  const bool renamed = written.label != store.super().label || written.uuid != store.super().uuid;
  const bool makes_snapshot = store.protection().is_pending();
  if (store.staging().dirty() || scrubbed || renamed || makes_snapshot || !written.clean) {
    const Status settled = store.checkpoints().make({.clean = status.ok(), .evacuate = {}});  // not if orphans could not be read
    if (status.ok()) status = settled;
  }
  engine_->jobs().stop();
  store.io().drain();
  return status;
}

SpaceInfo Filesystem::space() const {
  const space::Charge& charge = engine_->store().charge();
  SpaceInfo info;
  const std::uint64_t capacity = charge.capacity_blocks();
  info.total = capacity - std::min(capacity, charge.reserve_blocks());
  const std::uint64_t used = std::min(info.total, charge.blocks());
  const std::uint64_t unused = info.total - used, lost = std::min(unused, engine_->cleaner().lost_room());
  info.free = info.available = (unused - lost) - (unused - lost) / 65;  // a block costs its metadata too
  return info;
}

Result<SpaceInfo> Filesystem::statfs(Operation& operation) {
  return engine_->attempt(operation, [&](operation::Attempt& a) -> Result<SpaceInfo> {
    store::Store& store = a.store();
    SpaceInfo info = space();
    info.inodes_free = info.free;
    info.inodes = store.charge().inodes() + info.inodes_free;
    return info;
  });
}

FilesystemStatus Filesystem::status() {
  store::Store& store = engine_->store();
  FilesystemStatus status;
  status.device = store.device().name();
  status.backend = store.device().geometry().backend;
  const format::Superblock named = store.superblocks().written();
  status.label = named.label;
  status.uuid = format::uuid_text(named.uuid);
  status.read_only = store.faults().read_only();
  if (status.read_only) status.read_only_reason = store.faults().reason();
  status.uptime_seconds = (store.options().clock->monotonic_ns() - engine_->started_ns()) / 1'000'000'000ULL;
  status.device_blocks = named.device_blocks;
  status.reserve_blocks = store.charge().reserve_blocks();
  {
    const Gate::Pass pass(store.gate());
    status.charged_blocks = store.charge().blocks();
    status.available_blocks = space().available;
    status.snapshots.held_blocks = store.trees().view().tables.held_blocks;
    status.snapshots.loose_blocks = store.trees().view().automatic.blocks;
    status.delta_bytes = store.changes().bytes();
    fill_log(status, store);
  }
  status.snapshots.count = store.snapshots().count();
  if (const Status damage = store.snapshots().damage(); !damage.ok()) status.snapshots.damage = damage.error().message();
  status.snapshots.giving_back = store.snapshots().deletion_is_left();
  status.snapshots.automatic = store.snapshots().automatic();
  status.snapshots.given_up = store.protection().given_up();
  status.protection = store.protection().settings();
  const checkpoint::Protection::Kept kept = store.protection().kept();
  status.snapshots.kept_by_rule = kept.by_rule;
  status.snapshots.oldest_automatic_s = kept.oldest_s;
  status.snapshot = store.options().snapshot;
  status.delta_records = store.changes().count_records();
  fill_segments(status, store);
  fill_traffic(status, store);
  status.device_profile = store.space().device_profile();
  status.waits = engine_->operations().wait_times().counts();
  status.cleaner_state = engine_->cleaner().state();
  status.cleaner_running = status.cleaner_state.rfind("idle", 0) != 0;
  const cleaner::Cleaner::Spellings rules = engine_->cleaner().spellings();
  status.strategy = rules.strategy;
  status.victim_policy = rules.victims;
  status.placement = rules.placement;
  status.strategy_explanation = engine_->cleaner().explanation();
  status.pinned_segments = engine_->cleaner().pinned_segments();
  status.pinned_garbage_blocks = engine_->cleaner().pinned_garbage();
  status.node_cache_bytes = store.trees().cache().bytes();
  status.node_cache_hits = store.trees().cache().hits();
  status.node_cache_misses = store.trees().cache().misses();
  status.inodes_cached = store.inodes().size();
  status.references = engine_->operations().references().inodes();
  status.memory_limit_bytes = engine_->options().memory_limit_bytes;
  if (!status.memory_limit_bytes) status.memory_limit_bytes = engine_->options().memory_bytes;
  std::tie(status.first_error, status.last_error) = store.faults().first_and_last();
  status.faults = store.faults().counts();
  status.scrub = scrub_state();
  return status;
}

Status Filesystem::expect_room_on_host() const {
  return host_full() ? Status(Error(Errc::host_full, "no space left where the image lies: make room there first")) : Status();
}

Status Filesystem::start_clean(const jobs::CleanRequest& request) {
  if (!request.dry_run) TRY(expect_room_on_host());
  TRY(engine_->jobs().clean_job().start(request));
  engine_->jobs().attend(engine_->jobs().clean_job());
  return {};
}

void Filesystem::stop_clean() {
  engine_->jobs().clean_job().stop();
  engine_->jobs().requests().kick();
}

Status Filesystem::start_resize(const jobs::ResizeRequest& request) {
  TRY(expect_room_on_host());
  TRY(engine_->jobs().resize_job().start(request));
  engine_->jobs().attend(engine_->jobs().resize_job());
  return {};
}

void Filesystem::stop_resize() {
  engine_->jobs().resize_job().stop();
  engine_->jobs().requests().kick();
}

jobs::ResizeState Filesystem::resize_state() { return engine_->jobs().resize_job().state(); }

std::vector<cleaner::PastRound> Filesystem::history() { return engine_->cleaner().history().rounds(); }

jobs::CleanState Filesystem::clean_state() { return engine_->jobs().clean_job().state(); }

Status Filesystem::tune(std::string_view name, std::string_view value) {
  if (name == "strategy") return engine_->cleaner().set_strategy(value);
  if (name == "policy") return engine_->cleaner().set_victims(value);
  if (name == "placement") return engine_->cleaner().set_placement(value);
  if (name == "history") {
    std::size_t rounds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rounds);
    if (error != std::errc() || end != value.data() + value.size() || rounds > cleaner::History::kMost)
      return Error(Errc::invalid, fmt::format("history={}: must be a number of rounds up to {}", value, cleaner::History::kMost));
    engine_->cleaner().history().keep(rounds);
    return {};
  }
  if (name == "label" || name == "uuid") return rename(name, value);
  if (name == "protect" || name == "protect_every") return protect(name, value);
  return Error(Errc::invalid, fmt::format("there is no setting '{}' (strategy, policy, placement, history, protect, protect_every)", name));
}

Status Filesystem::protect(std::string_view name, std::string_view value) {
  if (read_only()) return Error(Errc::read_only, "mounted read-only: no snapshots are made");
  checkpoint::Protection& protection = engine_->store().protection();
  const auto settings = name == "protect" ? snapshots::with_window(protection.settings(), value)
                                          : snapshots::with_interval(protection.settings(), value);
  if (!settings.ok()) return Error(settings.error().code(), fmt::format("{}={}: {}", name, value, settings.error().message()));
  protection.set(*settings);
  begin_protection();
  return {};
}

// The tools that made them ended with the mount before. A tool that opens an image leaves them to the next mount: they may be what it is
// asked about.
void Filesystem::drop_passing_snapshots() {
  if (read_only() || engine_->store().protection().settings().mode == snapshots::ProtectionSettings::Mode::leave) return;
  snapshots::Snapshots& snapshots = engine_->store().snapshots();
  for (const format::SnapshotItem& one : snapshots.list())
    if (format::is_passing_name(one.name)) {
      log_warn("the snapshot '{}' is deleted: a tool that was interrupted has left it", one.name);
      snapshots.order({snapshots::SnapshotChange::Kind::remove, one.name, {}});
    }
  if (snapshots.anything_asked()) engine_->jobs().requests().kick();
}

// The state of now is the first that can be gone back to; or those left behind go.
void Filesystem::begin_protection() {
  if (read_only()) return;
  engine_->store().protection().begin();
  if (!engine_->store().protection().is_due()) return;
  engine_->jobs().maintenance().attend();
}

// Of the filesystem itself: what the next superblocks say.
Status Filesystem::rename(std::string_view name, std::string_view value) {
  if (read_only()) return Error(Errc::read_only, "mounted read-only: its name cannot be changed");
  TRY(expect_room_on_host());  // no checkpoint would write it for as long as that lasts
  checkpoint::SuperblockKeeper& keeper = engine_->store().superblocks();
  if (name == "label") {
    TRY(format::check_label(value));
    keeper.set_label(std::string(value));
    engine_->jobs().requests().ask_for_checkpoint();
    return {};
  }
  const auto uuid = format::parse_uuid(value);
  if (!uuid) return Error(Errc::invalid, fmt::format("{}: not a UUID (32 hexadecimal digits)", value));
  keeper.set_uuid(*uuid);
  engine_->jobs().requests().ask_for_checkpoint();
  return {};
}

std::string Filesystem::label() const { return engine_->store().superblocks().written().label; }

const format::Superblock& Filesystem::superblock() const { return engine_->store().super(); }
bool Filesystem::may_have_protected_files() const {
  return engine_->store().superblocks().written().features.compat & format::kCompatProtectedFiles;
}
void Filesystem::set_host_full(bool is_full) {
  store::Store& store = engine_->store();
  const bool was_full = store.faults().host_full();
  store.faults().set_host_full(is_full);
  if (is_full && was_full) store.log().durability().let_go(Errc::host_full);
  store.log().flow().wake();  // they are refused, or let in
  store.waiters().wake();
  engine_->jobs().requests().kick();
}

void Filesystem::bound_memory(std::size_t bytes, std::size_t process_bytes) { engine_->bound_memory(bytes, process_bytes); }

bool Filesystem::host_full() const { return engine_->store().faults().host_full(); }

void Filesystem::stop_writing(const Error& why) { engine_->store().faults().go_read_only(why); }

operation::Operations& Filesystem::operations() { return engine_->operations(); }

bool Filesystem::read_only() const { return engine_->store().faults().read_only(); }

}  // namespace varve::fs
