#include "cleaner/mover.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/invariant.h"
#include "base/logging.h"
#include "changes/inode.h"
#include "changes/layers.h"
#include "changes/staging.h"
#include "checkpoint/seals.h"
#include "checkpoint/superblocks.h"
#include "device/device_timer.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "device/write_cost.h"
#include "format/map_record.h"
#include "log/log.h"
#include "segments/counters.h"
#include "space/demand.h"
#include "space/holes.h"
#include "space/space.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::cleaner {

namespace {

std::vector<BlockAddr> addresses_of(std::span<const LiveBlock> blocks) {
  std::vector<BlockAddr> addresses;
  for (const LiveBlock& block : blocks) addresses.push_back(block.address);
  return addresses;
}

}  // namespace

Mover::Mover(store::Store& store, std::size_t buffer, BadBlocks* known)
    : store_(store), buffer_(buffer), source_(store.trees().cache(), store.device()), batch_(store.device()), known_(known) {}

Result<std::vector<LiveBlock>> Mover::live_blocks(SegmentId segment) {
  const device::DeviceTimer timer(store_.io());
  std::vector<LiveBlock> live, held_nodes;
  nodes_beside_ = 0;
  const auto& geometry = store_.segments().geometry();
  const tree::TreeView& view = store_.trees().own_view();
  const auto bits = TRY(space::live_bits(source_, view, geometry, segment));
  const format::Run whole{geometry.start_of(segment), geometry.blocks};
  TRY(space::check_reverse_map(source_, view, {&whole, 1}));
  const std::uint64_t per_leaf = view.reverse_map.shape.per_leaf();
  for (std::uint32_t i = 0; i < geometry.blocks; ++i) {
    if (!bits[i]) continue;
    const BlockAddr address = geometry.start_of(segment) + i;
    const auto leaf = TRY(tree::find_map_leaf(source_, view.reverse_map, address.v));
    if (!leaf) return Error(Errc::corrupt, fmt::format("block {} is live but the reverse map does not know it", address));
    const auto entry = TRY(format::decode_reverse_entry(
        leaf->records().subspan((address.v % per_leaf) * format::kReverseEntryBytes, format::kReverseEntryBytes)));
    if (entry.owner == format::Owner::none)  // a checkpoint could not read what stood there
      return Error(Errc::corrupt, fmt::format("block {} is live but the reverse map does not know whose it is", address));
    if (entry.owner == format::Owner::file_block)
      live.push_back({address, entry.ino, entry.block, entry.clock, entry.crc, entry.estimate});
    else if (view.tables.root && entry.owner == format::Owner::node && entry.tree == format::TreeId::inode_file)
      TRY(look_at_node(address, entry.level, held_nodes));
    else
      ++nodes_beside_;
  }
  if (view.tables.root) TRY(sort_out_held(live));
  // A block that a snapshot would still have stays: apply() looks which of them have it by then.
  std::erase_if(live, [&](const LiveBlock& block) {
    return !block.held && !is_kept(block) && is_replaced(block);
  });
  if (!held_nodes.empty()) {
    live.insert(live.end(), held_nodes.begin(), held_nodes.end());
    std::ranges::sort(live, {}, &LiveBlock::address);
  }
  look_up_ns_ += timer.span().ns;
  return live;
}

// By what no checkpoint has merged yet.
bool Mover::is_replaced(const LiveBlock& block) const {
  const Gate::Pass pass(store_.gate());
  const changes::InodePtr inode = store_.inodes().find(block.ino);
  if (!inode) return false;
  ReadLock lock(inode->mutex);
  return inode->gone() || !still_there(changes::layers_of(*inode, store_.trees().view()), block);
}

bool still_there(const changes::Layers& layers, const LiveBlock& block) {
  changes::MappedBlock mapped;
  changes::resolve_in_deltas(layers, block.block, {&mapped, 1});
  return mapped.kind == changes::MappedBlock::Kind::unknown ||
         (mapped.kind == changes::MappedBlock::Kind::device && mapped.address == block.address);
}

Status Mover::move(std::span<const LiveBlock> blocks, Sound beside_bad, const std::function<bool()>& stop) {
  beside_bad_ = beside_bad;
  {
    const Gate::Pass pass(store_.gate());
    if (!store_.space().may_move({})) return Errc::no_space;
  }
  return in_batches(blocks, &Mover::move_batch, false, stop);
}

template <class Item>
Status Mover::in_batches(std::span<const Item> items, Status (Mover::*one)(std::span<const Item>, const std::function<bool()>&),
                         bool small_lots, const std::function<bool()>& stop) {
  const device::DeviceTimer timer(store_.io());
  write_ns_ = 0;
  bad_ = 0;
  Status status;
  stopped_ = false;
  std::size_t at = 0;
  while (at < items.size() && status.ok() && !stopped_) {
    const auto batch = items.subspan(at, std::min(small_lots ? plugs_at_once() : buffer_, items.size() - at));
    status = (this->*one)(batch, stop);
    if (!stopped_) at += batch.size();
    stopped_ = stopped_ || (at < items.size() && stop && stop());
  }
  const device::DeviceSpan took = timer.span();
  if (status.ok()) store_.io().write_cost().observe_handling(at, {look_up_ns_ + took.ns - write_ns_, took.weight});
  look_up_ns_ = 0;
  return status;
}

Result<std::vector<Mover::ReadBlock>> Mover::read_sound_ones(std::span<const LiveBlock> blocks, io::SparseRead& read,
                                                             const std::function<bool()>& stop) {
  const device::DeviceTimer timer(store_.io());
  Status status = read.run(batch_, stop);
  if (!status.ok() && (status.fails_with(Errc::no_memory) || !device_answers())) return status.error();
  stopped_ = read.stopped();
  if (stopped_) return std::vector<ReadBlock>();
  store_.io().write_cost().observe_read(timer.span());
  store_.counters().cleaned_blocks_read += blocks.size();
  const auto unnamed = TRY(unnamed_of(blocks));
  std::vector<ReadBlock> good;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::byte* bytes = read.block(i);
    if (read.failed(i)) note_bad(blocks[i], Errc::io, "cannot be read");
    else if (crc32c({bytes, kBlockSize}) != blocks[i].crc) note_bad(blocks[i], Errc::corrupt, "is damaged");
    else if (const auto found = unnamed.find(&blocks[i]); found != unnamed.end())
      note_bad(blocks[i], found->second, "is named by a tree node that cannot be read");
    else good.push_back({&blocks[i], bytes});
  }
  if (bad_ && beside_bad_ == Sound::left) good.clear();
  return good;
}

// The checkpoint changes the leaves that name what is moved. Over one that cannot be read the filesystem would become read-only. So what
// such a leaf names stays. In the order of the leaves, which the checkpoint finds in memory then.
Result<std::unordered_map<const LiveBlock*, Errc>> Mover::unnamed_of(std::span<const LiveBlock> blocks) {
  std::vector<const LiveBlock*> by_file;
  for (const LiveBlock& block : blocks)
    if (!block.held) by_file.push_back(&block);
  std::ranges::sort(by_file, {}, [](const LiveBlock* block) { return std::pair(block->ino, block->block); });
  std::unordered_map<const LiveBlock*, Errc> unnamed;
  for (const LiveBlock* block : by_file) {
    changes::MappedBlock mapped;
    const Status found = changes::resolve_in_tree(block->ino, store_.trees().own_view(), source_, block->block, {&mapped, 1});
    if (found.ok()) continue;
    if (found.fails_with(Errc::no_memory) || !device_answers()) return found.error();
    unnamed.emplace(block, found.error().code());
  }
  return unnamed;
}

void Mover::note_bad(const LiveBlock& block, Errc what, std::string_view is) {
  ++bad_;
  const bool had_room = known_ && !known_->is_full();
  if (known_ && !known_->add(store_.segments().geometry().segment_of(block.address), block)) return;
  const std::string whose = block.is_node ? "a node of a snapshot" : fmt::format("inode {}, file block {}", block.ino, block.block);
  log_error("{}: block {} ({}{}) {}; it stays where it is", store_.device().name(), block.address, whose,
                block.held && !block.is_node ? ", in a snapshot" : "", is);
  store_.faults().note(what, block.address, block.ino);
  if (had_room && known_->is_full()) log_error("{}: so many blocks are bad that no more are reported", store_.device().name());
}

bool Mover::device_answers() const {
  return checkpoint::device_answers(store_.device(), store_.trees().own_view().reverse_map.shape.records);
}

// Read in the order they stand in, written by group, and in a group in the order of their files.
Status Mover::move_batch(std::span<const LiveBlock> blocks, const std::function<bool()>& stop) {
  io::SparseRead read(addresses_of(blocks));
  auto good = TRY(read_sound_ones(blocks, read, stop));
  std::stable_sort(good.begin(), good.end(), [](const ReadBlock& a, const ReadBlock& b) {
    return std::tuple(a.block->group, a.block->ino, a.block->block) < std::tuple(b.block->group, b.block->ino, b.block->block);
  });
  for (auto at = good.begin(); at != good.end();) {
    auto end = at;
    while (end != good.end() && end->block->group == at->block->group && static_cast<std::size_t>(end - at) < kMostWritten) ++end;
    TRY(write_some({at, end}, at));
  }
  return {};
}

// Writes the first of `blocks`, as many as fit at the head, and moves `next` behind them.
Status Mover::write_some(std::span<const ReadBlock> blocks, std::vector<ReadBlock>::iterator& next) {
  format::Run run;
  {
    const Gate::Closure closed(store_.gate());
    const auto wanted = static_cast<std::uint32_t>(blocks.size());
    const unsigned group = store_.space().head_for(blocks[0].block->group);
    if (store_.space().may_move(space::demand_of_moves(wanted, wanted), group)) run = store_.log().heads().allocate(group, wanted);
    if (run.blocks) store_.segments().add_in_flight(run.start, run.blocks);
  }
  if (!run.blocks) return Error(Errc::no_space, "no clean segment left for the cleaner");
  add_write(run.start, blocks.first(run.blocks));
  Status status = write_batch(run.blocks);
  for (std::uint32_t i = 0; i < run.blocks && status.ok(); ++i) status = apply(*blocks[i].block, run.start + i);
  store_.segments().sub_in_flight(run.start, run.blocks);
  INVARIANT(run.blocks <= blocks.size());
  next += run.blocks;
  return status;
}

// From where they were read to: what stands together in memory is one piece of the request.
void Mover::add_write(BlockAddr to, std::span<const ReadBlock> blocks) {
  INVARIANT(store_.segments().geometry().contains(to, blocks.size()));
  io::IoRequest& request = batch_.add(io::IoKind::write, to.v << kBlockShift);
  for (std::size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    for (end = begin + 1; end < blocks.size(); ++end)
      if (blocks[end].bytes != blocks[end - 1].bytes + kBlockSize) break;
    request.add(const_cast<std::byte*>(blocks[begin].bytes), (end - begin) * kBlockSize);
  }
}

// On trial it is flushed before and behind: what others have left in a cache is not in the account, and what this leaves there is.
Result<std::uint64_t> Mover::run_batch(std::size_t blocks, bool is_trial) {
  if (is_trial) {
    const Status flushed = store_.log().durability().flush_now();
    if (!flushed.ok()) batch_.clear();  // its requests name memory of the caller's
    TRY(Status(flushed));
  }
  const std::size_t requests = batch_.size();
  const device::DeviceTimer timer(store_.io());
  const std::uint64_t host_fulls = store_.faults().host_fulls();
  const bool was_full = store_.faults().host_full();
  const Status status = batch_.run();
  batch_.clear();
  TRY(status);
  store_.log().durability().note_write();
  if (is_trial) TRY(store_.log().durability().flush_now());
  const device::DeviceSpan took = timer.span();
  write_ns_ += took.ns;
  if (!was_full && store_.faults().host_fulls() == host_fulls)
    store_.io().write_cost().observe(static_cast<std::uint32_t>(requests), static_cast<std::uint32_t>(blocks), took);
  store_.counters().cleaned_blocks += blocks;
  return took.ns;
}

Status Mover::write_batch(std::size_t blocks) {
  TRY(run_batch(blocks, false));
  return {};
}

// Two single blocks that take long are enough: on a card each is a copy of a unit.
Status Mover::write_on_trial(std::size_t blocks) {
  constexpr std::uint64_t kEnough = 2;
  const std::uint64_t took = TRY(run_batch(blocks, true));
  if (!trial_->singly) return {};
  if (took < device::WriteCost::kLongNs) {
    trial_->singly = false;
    return {};
  }
  trial_->least_ns = std::min(trial_->least_ns, took);
  if (++trial_->slow == kEnough) store_.io().write_cost().observe_slow(trial_->least_ns);
  return {};
}

// --- into holes -------------------------------------------------------------------------------------------------------

Status Mover::plug(std::span<const Plug> plugs, const std::function<bool()>& stop) {
  beside_bad_ = Sound::moved;
  return in_batches(plugs, &Mover::plug_batch, true, stop);
}

// What the device writes in a fifth of a second, here and there; others wait behind it. A few where that is not known.
std::size_t Mover::plugs_at_once() const {
  if (trial_ && trial_->singly) return 1;
  constexpr std::size_t kFew = 2 * device::WriteCost::kPieces;
  constexpr std::uint64_t kLong = 200'000'000;
  constexpr std::size_t kFewest = device::WriteCost::kPieces;
  const std::uint64_t within = store_.io().write_cost().scattered_within(kLong);
  return std::clamp<std::size_t>(within, std::min(within ? kFewest : kFew, buffer_), buffer_);
}

// All of a batch at once: in flight from before a checkpoint could freeze until each is named by a record, or dropped.
Status Mover::hand_out(std::span<const Plug> plugs) {
  std::set<SegmentId> refilled;
  for (const Plug& plug : plugs) refilled.insert(store_.segments().geometry().segment_of(plug.to));
  const Gate::Closure closed(store_.gate());
  space::Demand demand = space::demand_of_moves(plugs.size(), plugs.size());
  demand.scattered = refilled.size();
  if (!store_.space().may_move(demand))
    return Error(Errc::no_space, "no clean segment left for what a checkpoint must write after cleaning");
  for (const Plug& plug : plugs) store_.space().hand_out_hole({plug.to, 1});
  return {};
}

// Read in the order they stand in, written in the order they go to, many at a time.
Status Mover::plug_batch(std::span<const Plug> plugs, const std::function<bool()>&) {
  std::vector<Plug> by_source(plugs.begin(), plugs.end());
  std::ranges::sort(by_source, {}, [](const Plug& plug) { return plug.block.address; });
  std::vector<LiveBlock> blocks;
  std::unordered_map<const LiveBlock*, BlockAddr> target;
  for (const Plug& plug : by_source) blocks.push_back(plug.block);
  for (std::size_t i = 0; i < blocks.size(); ++i) target[&blocks[i]] = by_source[i].to;

  io::SparseRead read(addresses_of(blocks));
  auto good = TRY(read_sound_ones(blocks, read));
  if (good.empty()) return {};
  INVARIANT(good.size() <= plugs.size());
  std::ranges::sort(good, {}, [&](const ReadBlock& block) { return target[block.block]; });
  TRY(hand_out(plugs));
  for (std::size_t begin = 0, end = 0; begin < good.size(); begin = end) {
    const BlockAddr to = target[good[begin].block];
    for (end = begin + 1; end < good.size() && end - begin < kMostWritten; ++end)
      if (target[good[end].block] != to + (end - begin)) break;
    add_write(to, std::span(good).subspan(begin, end - begin));
  }
  Status status = trial_ ? write_on_trial(good.size()) : write_batch(good.size());
  plugged_ += good.size();
  for (std::size_t i = 0; i < good.size() && status.ok(); ++i) status = apply(*good[i].block, target[good[i].block]);
  for (const Plug& plug : plugs) store_.segments().sub_in_flight(plug.to, 1);
  return status;
}

Status Mover::apply(const LiveBlock& block, BlockAddr to) {
  if (block.held) return apply_held(block, to);
  constexpr std::size_t kMoveRecordBytes = 48;
  for (;;) {
    {
      const Gate::Pass pass(store_.gate());
      if (store_.faults().read_only()) return store_.faults().refusal();
      if (store_.staging().unsealed().reserve_records(kMoveRecordBytes)) {
        const changes::InodePtr inode = store_.inodes().get(block.ino);
        WriteLock lock(inode->mutex);
        if (!inode->gone() && still_there(changes::layers_of(*inode, store_.trees().view()), block)) {
          store_.staging().move(*inode, block.block, block.address, to, block.crc, block.clock, block.estimate);
          return {};
        }
        if (!is_kept(block)) return {};
        break;
      }
    }
    if (auto sealed = store_.seals().seal(); !sealed.ok()) return sealed.error();
  }
  LiveBlock shared = block;  // its file has lost it, and a snapshot still has it
  shared.held = shared.shared = true;
  return apply_held(shared, to);
}

}  // namespace varve::cleaner
