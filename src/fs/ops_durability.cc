// fsync, sync, checkpoint, trim, scrub.
#include <utility>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "fs/engine.h"
#include "fs/inode_util.h"
#include "fs/snapshot_looks.h"
#include "jobs/jobs.h"
#include "log/log.h"
#include "scrub/scrubber.h"
#include "snapshots/snapshots.h"

namespace varve::fs {

// The prefix rule makes every fsync one of the whole history before it. But what has been written with O_SYNC or O_DSYNC is durable already
// when the kernel sends its times and a sync: then there is nothing more to seal.
Status Filesystem::fsync(Operation& operation, Ino, Keeps keeps) {
  store::Store& store = engine_->store();
  if (!operation.wait().sealed && !store.options().read_only) {
    const Gate::Pass pass(store.gate());
    const changes::Unsealed& unsealed = store.staging().unsealed();
    if (keeps == Keeps::all ? unsealed.has_only_known_times() : unsealed.has_only_times())
      operation.wait().sealed = store.log().position().lsn;
  }
  return sync(operation);
}

Status Filesystem::sync(Operation& operation) {
  store::Store& store = engine_->store();
  Wait& wait = operation.wait();
  if (auto failure = store.log().durability().failure()) return *failure;
  if (store.options().read_only) return {};  // nothing was written; one that became read-only cannot seal what was
  if (!wait.sealed) {
    wait.sealed = TRY(store.seals().seal(checkpoint::Seals::Purpose::commit, operation.reactor()));
    engine_->jobs().seal_timing().note_sync();
  }
  if (store.log().durability().is_durable(*wait.sealed)) return {};
  if (const auto why = std::exchange(wait.let_go, std::nullopt)) return *why;
  wait.for_durable = *wait.sealed;
  return Errc::would_block;
}

void Filesystem::give_back_messages(io::Reactor& reactor) {
  store::Store& store = engine_->store();
  if (store.staging().unsealed().stream_bytes()) (void)store.seals().seal(checkpoint::Seals::Purpose::append, &reactor).ok();
}

Status Filesystem::checkpoint(Operation& operation) {
  store::Store& store = engine_->store();
  Wait& wait = operation.wait();
  if (auto failure = store.log().durability().failure()) return *failure;
  if (store.faults().read_only()) return store.faults().refusal();
  if (store.faults().host_full()) return Errc::host_full;
  if (!store.staging().dirty() && !store.checkpoints().running()) return {};
  if (!wait.checkpoint) wait.checkpoint = store.checkpoints().next();
  if (store.checkpoints().settled() >= *wait.checkpoint) return {};
  wait.for_settled = true;
  return Errc::would_block;
}

Status Filesystem::change_snapshot(Operation& operation, const snapshots::SnapshotChange& change) {
  store::Store& store = engine_->store();
  Wait& wait = operation.wait();
  if (auto failure = store.log().durability().failure()) return *failure;
  if (store.faults().read_only()) return store.faults().refusal();
  if (!wait.snapshot && store.faults().host_full()) return Errc::host_full;
  if (!wait.snapshot) wait.snapshot = store.snapshots().ask(change);
  if (auto answer = store.snapshots().answer(*wait.snapshot)) {
    wait.snapshot.reset();
    return *answer;
  }
  wait.for_settled = true;
  return Errc::would_block;
}

void Filesystem::hold_snapshots(checkpoint::Protection::Users users) {
  engine_->store().protection().hold_for(std::move(users));
}

Status Filesystem::hold_for_reader(Serial snapshot, std::uint64_t reader, std::uint64_t seconds) {
  if (read_only()) return {};  // none goes
  TRY(engine_->store().readers().hold(snapshot, reader, seconds));
  if (seconds == 0 && engine_->store().protection().is_due()) engine_->jobs().requests().kick();
  return {};
}

namespace {
SnapshotFacts facts_of(const format::SnapshotItem& item, store::Store& store) {
  return {item.name, item.automatic, item.serial.v, store.protection().shown_made(item), item.inodes, item.data_blocks, item.alone};
}
}  // namespace

std::optional<SnapshotFacts> find_snapshot(Filesystem& filesystem, std::string_view name) {
  store::Store& store = filesystem.engine().store();
  const auto found = store.snapshots().find(name);
  return found ? std::optional(facts_of(*found, store)) : std::nullopt;
}

std::vector<SnapshotFacts> snapshots_behind(Filesystem& filesystem, Serial serial, std::size_t most) {
  std::vector<SnapshotFacts> facts;
  store::Store& store = filesystem.engine().store();
  for (const format::SnapshotItem& item : store.snapshots().list(serial, most)) facts.push_back(facts_of(item, store));
  return facts;
}

SnapshotNews snapshot_news(Filesystem& filesystem) {
  const snapshots::Snapshots::News news = filesystem.engine().store().snapshots().news();
  return {news.newest, news.changed};
}

SnapshotState Filesystem::snapshots() const {
  store::Store& store = engine_->store();
  SnapshotState state;
  for (const format::SnapshotItem& item : store.snapshots().list()) state.snapshots.push_back(facts_of(item, store));
  state.giving_back = store.snapshots().deletion_is_left();
  const Gate::Pass pass(store.gate());
  state.held_blocks = store.trees().view().tables.held_blocks;
  state.data_blocks = store.trees().view().data_blocks;
  state.automatic_blocks = store.trees().view().automatic.blocks;
  return state;
}

Status Filesystem::start_scrub(Operation& operation, const scrub::Request& request) {
  if (!engine_->store().faults().read_only() && !engine_->store().faults().host_full()) TRY(checkpoint(operation));
  return engine_->scrubber().start(request);
}

void Filesystem::stop_scrub() { engine_->scrubber().stop(); }

scrub::State Filesystem::scrub_state() const { return engine_->scrubber().state(); }

Result<std::uint64_t> Filesystem::trim(Operation& operation, std::uint64_t start, std::uint64_t length,
                                       std::uint64_t minimum) {
  if (!engine_->store().faults().host_full()) TRY(checkpoint(operation));  // else what is given back may be the room that is lacking
  return engine_->operations().trimmer().trim(operation, start, length, minimum);
}

}  // namespace varve::fs
