#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/invariant.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "log/log.h"
#include "operation/attempt.h"
#include "segments/log_clock.h"
#include "snapshots/places.h"
#include "snapshots/snapshots.h"
#include "space/charge.h"
#include "space/space.h"
#include "tree/neighbours.h"

namespace varve::operation {

// --- nodes for an attempt ---------------------------------------------------------------------------------------------

void Wait::take_answers() {
  for (NodeAnswer& answer : answers) {
    const NodeName name(answer.want.ref);
    if (answer.node) pins[name] = std::move(answer.node);
    else if (answer.error) failed_nodes.insert_or_assign(name, FailedNode{*answer.error, answer.want.where()});
  }
  answers.clear();
}

OperationSource::OperationSource(store::Store& store, Wait& wait, const tree::TreeView* shown)
    : trees_(store.trees()), faults_(store.faults()), io_(store.io()), wait_(wait), shown_(shown) {
  wait_.take_answers();
}

tree::NodePtr OperationSource::find(const tree::NodeWant& want) {
  // What stood there when the operation began may have been replaced while it waited (H30).
  const auto pinned = wait_.pins.find(NodeName(want.ref));
  if (pinned != wait_.pins.end()) return pinned->second;
  return trees_.cache().find(want);
}

Result<tree::NodePtr> OperationSource::get(const tree::NodeWant& want) {
  if (tree::NodePtr node = find(want)) return node;
  const tree::NodeWant there = TRY(placed(want));
  const auto found = wait_.failed_nodes.find(NodeName(want.ref));
  if (found != wait_.failed_nodes.end() && found->second.where == there.where()) {
    FailedNode& failed = found->second;
    // Only now: had a checkpoint freed its place while it was read, nobody would want it any more, and all is well (H30).
    if (!std::exchange(failed.noted, true)) faults_.note(failed.error.code(), want.ref.address, {});
    return failed.error;
  }
  wait_.nodes.push_back(there);
  return Errc::would_block;
}

Result<tree::NodePtr> OperationSource::get_child(const tree::Siblings& siblings, std::uint8_t level) {
  auto node = get({siblings.child().ref, siblings.tree, level});
  if (!node.fails_with(Errc::would_block) || view().kept) return node;
  const auto beside = tree::neighbours_of(trees_.cache(), siblings, level, io_.device().geometry().rotational);
  wait_.beside.insert(wait_.beside.end(), beside.begin(), beside.end());
  return node;
}

// Of a store that shows a snapshot it is never replaced.
const tree::TreeView& OperationSource::view() const { return shown_ ? *shown_ : trees_.own_view(); }

// A node of an old tree may stand elsewhere by now. Those of the tables that say so are read like others.
Result<tree::NodeWant> OperationSource::placed(const tree::NodeWant& want) {
  tree::NodeWant there = want;
  const tree::TreeView& tree = view();
  if (!tree.kept || want.tree != format::TreeId::inode_file) return there;
  const auto moved = TRY(snapshots::moved_since(*this, tree.snapshot_tree(), want.ref.address, 1, tree.kept));
  if (!moved.empty()) there.place = moved.begin()->second;
  return there;
}

void OperationSource::prefetch(std::span<const tree::NodeWant> wants) {
  for (const tree::NodeWant& want : wants)
    if (!find(want) && !wait_.failed_nodes.contains(NodeName(want.ref)))
      if (const auto there = placed(want); there.ok()) wait_.nodes.push_back(*there);
}

// --- attempt ------------------------------------------------------------------------------------------------------------

Attempt::Attempt(Operations& operations, Operation& operation)
    : operations_(operations),
      store_(operations.store()),
      operation_(operation),
      pass_(store_.gate()),
      shown_(view_of_snapshot()),
      source_(store_, operation.wait(), shown_ ? &*shown_ : nullptr) {}

// With the tables of this moment, since the cleaner moves what a snapshot holds.
std::optional<tree::TreeView> Attempt::view_of_snapshot() const {
  if (!operation_.shown()) return std::nullopt;
  inside();
  const auto snapshot = store_.snapshots().find(operation_.shown());
  if (!snapshot) return tree::TreeView();
  return tree::as_of(store_.trees().view(), *snapshot);
}

Status Attempt::check(const changes::Inode& inode, Wanted wanted) {
  if (inode.gone()) return Errc::stale;
  if (wanted == Wanted::directory && (inode.attributes.mode & 0170000) != 0040000) return Errc::not_directory;
  return {};
}

// It never changes: nobody else needs to know of it.
Result<changes::InodePtr> Attempt::find_in_snapshot(Ino ino, Wanted wanted) {
  if (!shown_->kept) return Errc::stale;  // it has gone
  changes::InodePtr inode(new changes::Inode(ino));
  WriteLock lock(inode->mutex);
  TRY(changes::load_attributes(*inode, *shown_, source_));
  TRY(check(*inode, wanted));
  return inode;
}

Result<changes::InodePtr> Attempt::find(Ino ino, Wanted wanted) {
  if (shown_) return find_in_snapshot(ino, wanted);
  changes::InodePtr inode = store_.inodes().get(ino);
  {
    ReadLock lock(inode->mutex);
    if (inode->loaded) {
      TRY(check(*inode, wanted));
      return inode;
    }
  }
  WriteLock lock(inode->mutex);
  TRY(changes::load_attributes(*inode, view(), source_));
  TRY(check(*inode, wanted));
  return inode;
}

Attempt::~Attempt() {
  for (const space::Demand& demand : granted_) store_.space().withdraw(demand);
}

// The charge of recent overwrites is a worst case; a checkpoint that begins now makes it exact. What has been written over
// meanwhile is the worst case of the next one: that alone is no reason to refuse anything, unless there is no end to it.
Status Attempt::wait_for_count(const space::Demand& demand) {
  constexpr unsigned kMostRecounts = 4;
  if (may_gain_from_automatic(demand)) {
    operation_.wait().for_settled = true;
    return Errc::would_block;
  }
  if (!store_.charge().has_estimates()) return Errc::no_space;
  Recount& recount = operation_.wait().recount;
  if (!recount.checkpoint) recount.checkpoint = store_.checkpoints().next();
  if (store_.checkpoints().settled() >= *recount.checkpoint) {
    if (recount.again == kMostRecounts || !store_.charge().fits_at_best(demand)) return Errc::no_space;
    ++recount.again;
    recount.checkpoint = store_.checkpoints().next();
  }
  operation_.wait().for_settled = true;
  return Errc::would_block;
}

// What was charged for tools that have ended is free again.
bool Attempt::fits(const space::Demand& demand) {
  return store_.charge().fits(demand) || (store_.readers().forget_ended() && store_.charge().fits(demand));
}

// What automatic snapshots hold alone is charged to nobody. Of some of it that is not known: it is given up before anything is refused.
bool Attempt::may_gain_from_automatic(const space::Demand& demand) {
  snapshots::Snapshots& snapshots = store_.snapshots();
  if (!store_.charge().may_fit_without_automatic(demand)) return false;
  return store_.protection().ask_for_room(checkpoint::Protection::Need::all) || snapshots.deletion_is_left();
}

Status Attempt::admit(const space::Demand& demand, bool waits_for_memory) {
  inside();
  if (shown_) return Errc::read_only;
  if (store_.faults().read_only()) return store_.faults().refusal();
  if (store_.faults().host_full()) return Errc::host_full;
  if (demand.record_bytes > format::kMaxChunkRecordBytes) return Error(Errc::no_space, "more than one chunk has room for");
  constexpr int kFruitlessRounds = 6;
  Wait& wait = operation_.wait();
  if (!demand.frees && (demand.new_blocks || demand.new_inodes) && !fits(demand)) return wait_for_count(demand);
  wait.recount.checkpoint.reset();  // it has done its work: if others fill what it found, another one counts anew
  if (waits_for_memory && store_.space().changes_fill_memory()) {
    wait.for_settled = true;
    return Errc::would_block;
  }
  if (demand.payload && store_.log().flow().is_full()) {
    wait.for_room = true;
    return Errc::would_block;
  }
  const auto room = store_.space().admit(demand);
  if (room == space::Space::Room::chunk_full) {
    wait.retry = Retry::with_seal;
    return Errc::would_block;
  }
  if (room == space::Space::Room::no_segment) {
    count_fruitless_rounds();
    wait.for_space = true;
    // What needs no new space fails only if nothing at all can be reclaimed any more.
    if (wait.space.fruitless > (demand.frees || !demand.new_blocks ? 8 * kFruitlessRounds : kFruitlessRounds)) return Errc::no_space;
    wait.for_settled = true;
    return Errc::would_block;
  }
  granted_.push_back(demand);
  INVARIANT(granted_.size() <= 16);  // an attempt asks once, or for each of a few files
  return {};
}

// There are several wake-ups in a round, and one in which others could write was not in vain: the waiting one may be next. Nor is
// one while segments are being discarded, which are as good as clean.
void Attempt::count_fruitless_rounds() {
  SpaceRounds& rounds = operation_.wait().space;
  const SpaceRounds::Round now{store_.checkpoints().rounds(), store_.log_clock().now()};
  const std::uint64_t clean = store_.segments().clean();
  if (clean > rounds.most_clean || store_.segments().discarding() || store_.snapshots().deletion_is_left()) rounds.fruitless = 0;
  else if (rounds.last && now.number != rounds.last->number && now.clock == rounds.last->clock)
    rounds.fruitless += store_.protection().ask_for_room(checkpoint::Protection::Need::half) ? 0 : 1;
  if (!rounds.last || now.number != rounds.last->number) rounds.last = now;
  rounds.most_clean = std::max(rounds.most_clean, clean);
}

namespace {

constexpr unsigned kMostFailures = 3;

std::uint32_t sum_of_sums(std::span<const changes::MappedBlock> blocks) {
  std::uint32_t sum = 0;
  for (const changes::MappedBlock& block : blocks) sum = crc32c(std::as_bytes(std::span(&block.crc, 1)), sum);
  return sum;
}

bool holds(const DataRead& read, std::span<const changes::MappedBlock> blocks) {
  if (read.error) return false;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (crc32c(read.bytes().subspan(i * kBlockSize, kBlockSize)) != blocks[i].crc) return false;
  return true;
}

}  // namespace

Result<std::span<const std::byte>> Attempt::fetch(std::span<const changes::MappedBlock> mapped, const FileBlockOf& whose,
                                                  std::byte* target) {
  const BlockAddr address = mapped.front().address;
  const auto blocks = static_cast<std::uint32_t>(mapped.size());
  for (DataRead& read : operation_.wait().reads) {
    if (read.address != address || read.blocks != blocks || (target && read.target != target)) continue;
    // May have been read before or after the block was used again (H30). But while one checkpoint follows the other, a long read would
    // never end if none counted that began before the last one, and neither would one that fails.
    if (read.done && read.seen != view().serial && !holds(read, mapped)) {
      const std::uint32_t wanted = sum_of_sums(mapped);
      read.failures = wanted == std::exchange(read.wanted, wanted) ? read.failures + 1 : 0;
      if (read.failures <= kMostFailures) {
        read.seen = view().serial;
        read.started = read.done = false;
      }
    }
    if (!read.done) return Errc::would_block;
    if (read.error) return blocks > 1 ? fetch_singly(read, mapped, whose) : unreadable(read, whose(0));
    return read.bytes();
  }
  INVARIANT(blocks > 0 && store_.segments().geometry().contains(address, blocks));
  DataRead& read = operation_.wait().reads.emplace_back();
  read.address = address;
  read.seen = view().serial;
  read.blocks = blocks;
  if (!target) {
    read.own = AlignedBuffer(std::size_t{blocks} * kBlockSize);
    target = read.own.data();
  }
  read.target = target;
  return Errc::would_block;
}

// One weak sector fails all that is read with it. So the others are there, and it is known which one it is.
Result<std::span<const std::byte>> Attempt::fetch_singly(DataRead& together, std::span<const changes::MappedBlock> mapped,
                                                         const FileBlockOf& whose) {
  bool waits = false;
  std::optional<Error> lost;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const auto of_this = [&](std::size_t) { return whose(i); };
    const auto bytes = fetch(mapped.subspan(i, 1), of_this, together.target + i * kBlockSize);
    if (bytes.fails_with(Errc::would_block)) waits = true;
    else if (!bytes.ok() && !lost) lost = bytes.error();
  }
  if (waits) return Errc::would_block;
  if (lost) return *lost;
  together.error = 0;
  return together.bytes();
}

Error Attempt::unreadable(DataRead& read, FileBlock block) {
  inside();
  const Error error(Errc::io, fmt::format("inode {}: block {} of the file (block {} of {}) cannot be read: {}", block.ino, block.block,
                                          read.address, store_.device().name(), std::generic_category().message(read.error)));
  if (!std::exchange(read.noted, true)) store_.faults().note_data(Errc::io, read.address, block.ino, error.message());
  return error;
}

// --- locks ----------------------------------------------------------------------------------------------------------------

InodeLocks::InodeLocks(std::initializer_list<changes::Inode*> inodes) {
  for (changes::Inode* inode : inodes)
    if (inode && std::find(inodes_.begin(), inodes_.end(), inode) == inodes_.end()) inodes_.push_back(inode);
  std::sort(inodes_.begin(), inodes_.end(), [](auto* a, auto* b) { return a->ino < b->ino; });
  for (changes::Inode* inode : inodes_) inode->mutex.lock();
}

InodeLocks::~InodeLocks() {
  for (auto at = inodes_.rbegin(); at != inodes_.rend(); ++at) (*at)->mutex.unlock();
}

}  // namespace varve::operation
