#include "store/store.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/logging.h"
#include "base/wait_list.h"
#include "changes/changes.h"
#include "changes/inode.h"
#include "changes/replay.h"
#include "changes/staging.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "checkpoint/reshaping.h"
#include "checkpoint/sealer.h"
#include "checkpoint/seals.h"
#include "checkpoint/superblock_keeper.h"
#include "checkpoint/superblocks.h"
#include "device/faults.h"
#include "format/image_mark.h"
#include "log/log.h"
#include "log/recovery.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "snapshots/snapshots.h"
#include "space/charge.h"
#include "space/discards.h"
#include "space/hole_feeder.h"
#include "space/space.h"
#include "tree/trees.h"

namespace varve::store {

namespace {

constexpr std::uint64_t kPatienceNs = 2'000'000'000;

// Shares of the memory bound.
constexpr std::size_t node_cache_bytes(std::size_t memory) { return memory / 5; }
constexpr std::size_t inode_count(std::size_t memory) { return memory / 16 / 512; }

// Of one chunk: as many as fit, unless their three copies (records, the same measured, the header in flight) take much of the memory.
std::size_t most_record_bytes(const format::Superblock& super, std::size_t memory) {
  return std::min(format::most_record_bytes(super.segment_blocks), std::max(format::kMaxChunkRecordBytes, memory / 64));
}

format::DeviceProfile profile_of(const format::Superblock& super, unsigned streams) {
  format::DeviceProfile profile = super.device;
  if (!streams) return profile;
  profile.streams = static_cast<std::uint16_t>(streams);
  profile.streams_source = format::Source::given;
  return profile;
}

std::uint64_t erase_unit_of(const format::Superblock& super) {
  return std::uint64_t{super.device.erase_blocks ? super.device.erase_blocks : super.segment_blocks} << kBlockShift;
}

format::TailLimits limits_of(const format::Superblock& super, const StoreOptions& options) {
  return options.tails ? format::TailLimits{*options.tails, *options.tails ? format::kUsualLoggedTail : 0} : super.tails;
}

}  // namespace

Store::Store(io::BlockDevice& device, const StoreOptions& options, const format::Superblock& super)
    : options_(options),
      io_(std::make_unique<device::IoContext>(device, options.background, *options.clock, erase_unit_of(super))),
      superblocks_(std::make_unique<checkpoint::SuperblockKeeper>(io_->device(), super)),
      faults_(std::make_unique<device::Faults>(io_->device(), *options.clock, super, options.read_only)),
      counters_(std::make_unique<segments::Counters>()),
      log_clock_(std::make_unique<segments::LogClock>(super.clock, super.clock_unit)),
      segments_(std::make_unique<segments::SegmentTable>(
          segments::SegmentGeometry{super.first_segment, super.segment_blocks, super.segments})),
      log_(std::make_unique<log::Log>(*io_, *segments_, super.identity, *options.clock, options.memory_bytes / 16, options.chunk_gap)),
      trees_(std::make_unique<tree::Trees>(io_->device(), super, segments_->geometry(), node_cache_bytes(options.memory_bytes))),
      snapshots_(std::make_unique<snapshots::Snapshots>(*log_clock_)),
      inodes_(std::make_unique<changes::InodeTable>(inode_count(options.memory_bytes))),
      changes_(std::make_unique<changes::Changes>(gate_, segments_->generation())),
      staging_(std::make_unique<changes::Staging>(*changes_, *trees_, *snapshots_, *segments_, *inodes_, *options.clock,
                                                  most_record_bytes(super, options.memory_bytes), super.next_ino)),
      charge_(std::make_unique<space::Charge>(*segments_, *trees_, *snapshots_, *changes_, *staging_)),
      space_(std::make_unique<space::Space>(
          space::SpaceParts{*segments_, *log_, gate_, *trees_, *snapshots_, *changes_, *staging_, *counters_, options_.memory_bytes,
                            profile_of(super, options.streams), io_->streams(), device.geometry().is_block_device})),
      waiters_(std::make_unique<WaitList>()),
      discards_(std::make_unique<space::Discards>(*io_, *segments_, *waiters_, options.discard)),
      hole_feeder_(std::make_unique<space::HoleFeeder>(
          space::HoleFeeder::Parts{gate_, *segments_, *log_, *trees_, *charge_, *space_, *faults_})),
      sealer_(std::make_unique<checkpoint::Sealer>(
          checkpoint::Sealer::Parts{*segments_, *log_, *log_clock_, *staging_, *space_, *hole_feeder_, *faults_})),
      readers_(std::make_unique<checkpoint::Readers>(checkpoint::Readers::Parts{gate_, *options.clock, *snapshots_, *charge_})),
      protection_(std::make_unique<checkpoint::Protection>(
          checkpoint::Protection::Parts{gate_, *options.clock, *changes_, *trees_, *snapshots_, *charge_, *space_, *readers_})),
      checkpoints_(std::make_unique<checkpoint::Checkpoints>(checkpoint::CheckpointParts{
          gate_, *options.clock, options_.memory_bytes, *io_, *faults_, *counters_, *segments_, *log_clock_, *log_, *superblocks_, *trees_,
          *snapshots_, *changes_, *inodes_, *staging_, *charge_, *space_, *hole_feeder_, *discards_, *waiters_, *sealer_, *readers_,
          *protection_})),
      seals_(std::make_unique<checkpoint::Seals>(
          checkpoint::Seals::Parts{gate_, *io_, *faults_, *log_, *staging_, *sealer_, *checkpoints_})),
      reshaping_(std::make_unique<checkpoint::Reshaping>(
          checkpoint::Reshaping::Parts{gate_, *options.clock, *faults_, *segments_, *log_, *trees_, *space_, *sealer_, *checkpoints_})) {
  staging_->set_tail_limits(limits_of(super, options));
  {
    const Gate::Closure closed(gate_);
    log_->heads().set_clock(super.clock);
  }
  log_->on_epoch_wanted([this] { checkpoints_->ask_for_epoch(); });
  log_->durability().on_failure([this](const Error& error) { faults_->go_read_only(error); });
  faults_->on_read_only([this](const Error& why) {
    io_->device().limit_holding(0);
    log_->durability().fail(why);
    log_->give_up();
    waiters_->end();
  });
}

Store::~Store() = default;

void Store::bound_memory(std::size_t bytes) {
  options_.memory_bytes = bytes;
  trees_->cache().bound(node_cache_bytes(bytes));
  inodes_->bound(inode_count(bytes));
}

const format::Superblock& Store::super() const { return superblocks_->found(); }

io::BlockDevice& Store::device() { return io_->device(); }

Result<std::unique_ptr<Store>> Store::open(io::BlockDevice& device, const StoreOptions& options) {
  // The first checkpoint would make the log's loss final.
  if (options.no_recovery && !options.read_only)
    return Error(Errc::invalid, fmt::format("{}: norecovery shows the last checkpoint without what the log holds since then, so it "
                                            "needs ro", device.name()));
  if (!options.snapshot.empty() && !options.read_only)
    return Error(Errc::invalid, fmt::format("{}: a snapshot is shown read-only, so it needs ro", device.name()));
  if (options.tails.value_or(0) > format::kMaxTail)
    return Error(Errc::invalid, fmt::format("tails of {} bytes: {} at most", *options.tails, format::kMaxTail));
  const checkpoint::Superblocks found = TRY(checkpoint::read_superblocks(device));
  const auto intent = options.read_only ? format::Intent::read : format::Intent::write;
  TRY(format::check_features(found.best, intent));
  // Recovery by fsck.varve works on it: what it does can be seen there.
  if (format::is_image(found.best) && !options.must_write)
    return Error(Errc::unsupported, fmt::format("{}: an image of metadata, as `varve image` makes them: it has no data of files, and is "
                                                "not mounted. fsck.varve, varve dump and varve map look into it", device.name()));
  if (!options.read_only && device.read_only())
    return Error(Errc::read_only, fmt::format("{} cannot be written: mount it with -o ro", device.name()));
  std::unique_ptr<Store> store(new Store(device, options, found.best));
  TRY(store->load_segments());
  TRY(store->load_snapshots());
  const Status tables = store->snapshots().damage();
  const Status started = !tables.ok() && !options.read_only ? tables : store->start(found.equal);
  if (started.ok()) return store;
  // Then what the log holds stays in the log, and is shown from there. A checkpoint needs each node in which something has changed.
  std::string damage = tables.ok() ? "" : tables.error().message();
  if (damage.empty() && tree::is_of_one_node(started.error())) damage = started.error().message() + ": run fsck.varve";
  const bool lacks_room = started.fails_with(Errc::no_space);  // the host, too: a repair would lack it as well
  if (damage.empty() && lacks_room) damage = started.error().message();
  if (damage.empty() || options.read_only || options.must_write) return started.error();
  store.reset();
  StoreOptions shown = options;
  shown.read_only = true;
  store = TRY(open(device, shown));
  store->faults().go_read_only(Error(lacks_room ? Errc::no_space : Errc::read_only, damage));
  return store;
}

Status Store::load_segments() {
  const format::Superblock& super = this->super();
  tree::BlockingSource source = trees_->source(false);
  const tree::MapRoot& free_map = trees_->own_view().free_map;
  const std::size_t record_bytes = free_map.shape.record_bytes;
  TRY(tree::scan_map(source, free_map, [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
    for (std::uint64_t i = 0; i < free_map.shape.per_leaf() && first + i < super.segments; ++i) {
      const auto record = TRY(format::decode_segment_record(records.subspan(i * record_bytes, record_bytes)));
      segments_->load(SegmentId{first + i}, record);
    }
    return {};
  }));
  const auto& geometry = segments_->geometry();
  auto open_run = [&](const format::Run& run, std::uint8_t group) {
    if (run.blocks) segments_->set_open(geometry.segment_of(run.start), group);
  };
  if (super.clean) {
    open_run(super.chain, format::kGroupChain);
    open_run(super.next_run, format::kGroupChain);
    open_run(super.node_head.rest, format::kGroupNodes);
    const Gate::Closure closed(gate_);
    for (unsigned g = 0; g < format::kMaxGroups; ++g) {
      open_run(super.heads[g].rest, static_cast<std::uint8_t>(g));
      log_->heads().set(g, super.heads[g].rest);
    }
  } else {
    for (const format::Run& run : {super.chain, super.next_run})
      if (run.blocks) segments_->occupy(geometry.segment_of(run.start));
    checkpoints_->set_node_head({});
  }
  return {};
}

Status Store::load_snapshots() {
  tree::BlockingSource source = trees_->source();
  TRY(snapshots().load(source, trees_->own_view().snapshot_tree()));
  const snapshots::SnapshotList& list = snapshots_->current();
  const snapshots::SnapshotList::Loose loose = list.loose();
  const std::uint64_t shared = trees_->own_view().tables.shared_nodes;
  trees_->note_automatic({loose.blocks, loose.standing, loose.most, shared, list.newest_permanent() != nullptr});
  const Status damage = snapshots().damage();
  if (!damage.ok() && options_.read_only)
    log_error("{}: {}; {} of {} snapshots can be shown", device().name(), damage.error().message(), snapshots().count(),
                  super().snapshots.snapshots);
  if (options_.snapshot.empty()) return {};
  const auto shown = snapshots().find(options_.snapshot);
  if (!shown && !damage.ok())
    return Error(Errc::corrupt, fmt::format("the list of snapshots is damaged, and '{}' is not in what can be read", options_.snapshot));
  if (!shown) return Error(Errc::not_found, fmt::format("{}: there is no snapshot '{}'", device().name(), options_.snapshot));
  trees_->show(*shown);
  return {};
}

Status Store::start(bool copies_equal) {
  const format::Superblock& super = this->super();
  if (!options_.read_only && std::max({super.serial.v, super.lsn.v, super.clock}) > format::kMostCount)
    return Error(Errc::out_of_range, fmt::format("{}: its counters are used up (checkpoint {}, chunk {}, log clock {}): mount it "
                                                 "with -o ro and copy what it holds to a new filesystem",
                                                 device().name(), super.serial, super.lsn, super.clock));
  // A crash between the two writes leaves an older copy: it is made good before anything is handed out (H26), but only
  // once the log agrees that this superblock is the newest (H27).
  auto make_equal = [&]() -> Status {
    if (options_.read_only || copies_equal) return {};
    return superblocks_->restore([this] { return log_->durability().flush_now(); });
  };
  // At the end of the device there may be one of a change of size that a crash has cut off. It may have been the only good one.
  auto make_good = [&]() -> Status {
    TRY(make_equal());
    return options_.read_only ? Status() : checkpoint::wipe_former_ends(device(), super, super.device_blocks);
  };
  const bool shows_past = options_.no_recovery || !options_.snapshot.empty();  // the log holds only what came later
  if (!super.clean && !shows_past) return recover(make_good);
  TRY(make_good());
  segments_->finish_loading();
  const Gate::Closure closed(gate_);
  log_->start({super.chain, super.next_run, super.lsn, super.chain_crc}, options_.random->next(), false);
  return {};
}

Status Store::recover(const std::function<Status()>& make_equal) {
  changes::Replay replay({*trees_, *inodes_, *segments_}, changes_->first());
  const std::uint64_t begun_ns = options_.clock->monotonic_ns();
  bool is_told = false;  // a user who waits, and may take it for a mount that hangs
  const auto apply = [&](const format::Chunk& chunk) {
    if (!is_told && options_.clock->monotonic_ns() - begun_ns > kPatienceNs) {
      is_told = true;
      log_warn("{}: replaying the log of before the crash; the mount is there when that is done", device().name());
    }
    return replay.apply(chunk);
  };
  const log::Recovered recovered =
      TRY(log::recover_chain(device(), super(), apply,
                             {.accept_damage = options_.accept_log_damage}));
  if (options_.drop_lost_inodes) TRY(replay.drop_lost_inodes());
  TRY(make_equal());
  if (options_.read_only) replay.count();
  segments_->finish_loading();
  counters_->replayed_chunks = recovered.chunks;
  log_clock_->set(recovered.clock);
  staging_->set_next_ino(std::max(staging_->next_ino(), recovered.next_ino));
  log::ChainPosition position{{}, {}, recovered.position.lsn, recovered.position.crc};
  if (!options_.read_only) {
    // The run after it is found when the first chunk is placed: the checkpoint to come has first claim to segments.
    const auto id = segments_->take(format::kGroupChain);
    if (!id) return Error(Errc::no_space, "no clean segment left to recover into");
    position.rest = {segments_->geometry().start_of(*id), super().segment_blocks};
  }
  {
    const Gate::Closure closed(gate_);
    log_->heads().set_clock(recovered.clock);
    log_->start(position, options_.random->next(), true);
    if (!options_.read_only) replay.give_blocks_to_tails(*staging_, log_clock_->units(recovered.clock));
  }
  if (options_.read_only) return {};
  log_info("{}: recovered {} of the log", device().name(), counted(recovered.chunks, "chunk"));
  superblocks_->count_recovery();
  return checkpoints_->make({});
}

}  // namespace varve::store
