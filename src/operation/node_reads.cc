#include "operation/node_reads.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/invariant.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "tree/neighbours.h"
#include "tree/trees.h"

namespace varve::operation {

struct NodeReads::Run : io::IoRequest {
  NodeReads* reads = nullptr;
  io::Reactor* home = nullptr;  // as begin() was told
  std::vector<Slot> slots;      // by address
  std::uint64_t spare = 0;      // blocks that nobody waited for when it began
  AlignedBuffer memory;

  BlockAddr first() const { return slots.front().want.where(); }
  std::uint64_t blocks() const { return slots.back().want.where() - first() + 1; }
};

NodeReads::~NodeReads() { MEMORY_INVARIANT(under_way_.empty()); }

namespace {

bool is_same(const tree::NodeWant& a, const tree::NodeWant& b) {
  return a.ref.address == b.ref.address && a.ref.crc == b.ref.crc && a.tree == b.tree && a.level == b.level && a.where() == b.where();
}

std::vector<tree::NodeWant> take_wants(Wait& wait) {
  std::vector<tree::NodeWant> wants = std::exchange(wait.nodes, {});
  std::unordered_set<NodeName, NodeName::Hash> seen;
  std::erase_if(wants, [&](const tree::NodeWant& want) { return !seen.insert(NodeName(want.ref)).second; });
  return wants;
}

}  // namespace

// --- beginning ------------------------------------------------------------------------------------------------------------

void NodeReads::begin(Wait& wait, io::Reactor* reactor) {
  const std::vector<tree::NodeWant> beside = std::exchange(wait.beside, {});
  if (wait.nodes.empty()) return;
  std::vector<RunPtr> runs;
  {
    const Lock lock(mutex_);
    std::vector<Slot> slots = missing_of(wait, reactor);
    if (!slots.empty()) add_ahead(slots, beside);
    runs = runs_of(std::move(slots), reactor);
    for (const RunPtr& run : runs) make_known(*run);
  }
  for (RunPtr& run : runs) start(std::move(run));
}

// A thread that blocks cannot wait for what only its own reactor would bring.
bool NodeReads::join(const tree::NodeWant& want, const Waiting& waiting) {
  const auto at = under_way_.find(want.ref.address.v);
  if (at == under_way_.end()) return false;
  Slot& slot = at->second.run->slots[at->second.slot];
  if (!is_same(slot.want, want) || (!waiting.reactor && at->second.run->home)) return false;
  slot.waiting.push_back(waiting);
  return true;
}

// What it lacks and nobody reads yet.
std::vector<NodeReads::Slot> NodeReads::missing_of(Wait& wait, const io::Reactor* reactor) {
  const std::vector<tree::NodeWant> wants = take_wants(wait);
  wait.answers.assign(wants.size(), {});  // these stay where they are until the wait is over
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < wants.size(); ++i) {
    INVARIANT(static_cast<bool>(wants[i].ref.address));
    wait.answers[i].want = wants[i];
    wait.waiter.expect();
    const Waiting waiting{&wait.waiter, &wait.answers[i], reactor};
    if (join(wants[i], waiting)) continue;
    // What came just now stood in the cache before it was not under way any more.
    wait.answers[i].node = parts_.trees.cache().find(wants[i]);
    if (wait.answers[i].node) wait.waiter.came({});
    else slots.push_back({wants[i], false, false, {waiting}});
  }
  return slots;
}

void NodeReads::add_ahead(std::vector<Slot>& slots, const std::vector<tree::NodeWant>& beside) {
  if (spare_ >= most_spare_) return;
  std::unordered_set<std::uint64_t> seen;
  for (const Slot& slot : slots) seen.insert(slot.want.ref.address.v);
  for (const tree::NodeWant& want : beside)
    if (!under_way_.contains(want.ref.address.v) && seen.insert(want.ref.address.v).second) slots.push_back({want, true, false, {}});
}

std::vector<NodeReads::RunPtr> NodeReads::runs_of(std::vector<Slot> slots, io::Reactor* reactor) {
  std::ranges::sort(slots, {}, [](const Slot& slot) { return slot.want.where(); });
  std::vector<tree::NodeWant> wants;
  for (const Slot& slot : slots) wants.push_back(slot.want);
  const std::uint64_t between = tree::most_between(parts_.io.device().geometry().rotational);
  std::vector<RunPtr> runs;
  for (std::size_t at = 0; at < slots.size();) {
    const std::size_t end = at + tree::run_length(std::span(wants).subspan(at), between);
    const auto from = slots.begin() + static_cast<std::ptrdiff_t>(at), to = slots.begin() + static_cast<std::ptrdiff_t>(end);
    if (!std::all_of(from, to, [](const Slot& slot) { return slot.is_ahead; })) {
      auto run = std::make_unique<Run>();
      run->reads = this;
      run->home = reactor;
      run->slots.assign(std::make_move_iterator(from), std::make_move_iterator(to));
      runs.push_back(std::move(run));
    }
    at = end;
  }
  return runs;
}

// One of a former checkpoint may still be on its way from the same address.
void NodeReads::make_known(Run& run) {
  for (std::size_t i = 0; i < run.slots.size(); ++i) {
    Slot& slot = run.slots[i];
    slot.is_known = under_way_.try_emplace(slot.want.ref.address.v, Place{&run, i}).second;
  }
  const auto wanted = std::ranges::count_if(run.slots, [](const Slot& slot) { return !slot.is_ahead; });
  run.spare = run.blocks() - static_cast<std::uint64_t>(wanted);
  spare_ += run.spare;
}

std::size_t NodeReads::waiting() const {
  const Lock lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, place] : under_way_) sum += place.run->slots[place.slot].waiting.size();
  return sum;
}

void NodeReads::start(RunPtr run) {
  run->memory = AlignedBuffer(run->blocks() * kBlockSize);
  run->offset = run->first().v << kBlockShift;
  run->add(run->memory.data(), run->memory.size());
  run->done = [](io::IoRequest& request) {
    RunPtr done(static_cast<Run*>(&request));
    NodeReads& reads = *done->reads;
    reads.came(std::move(done));
  };
  run->abandoned = [](io::IoRequest& request) {
    const RunPtr gone(static_cast<Run*>(&request));
    gone->reads->give_up(*gone);
  };
  Run* const started = run.release();
  parts_.io.start(*started, started->home);
}

// --- the end --------------------------------------------------------------------------------------------------------------

void NodeReads::came(RunPtr run) {
  forget_spare(*run);
  if (run->error && run->slots.size() > 1) return read_one_by_one(*run);
  for (Slot& slot : run->slots) deliver(slot, take(*run, slot));
}

void NodeReads::forget_spare(Run& run) {
  const Lock lock(mutex_);
  INVARIANT(spare_ >= run.spare);
  spare_ -= std::exchange(run.spare, 0);
}

// Nobody's fault is anybody else's: each that is waited for is asked for by itself, the others are forgotten.
void NodeReads::read_one_by_one(Run& run) {
  std::vector<RunPtr> runs;
  for (Slot& slot : run.slots) {
    const bool was_known = slot.is_known;
    std::vector<Waiting> waiting = take_waiting(slot);
    if (waiting.empty()) continue;
    auto one = std::make_unique<Run>();
    one->reads = this;
    one->home = run.home;
    one->slots.push_back({slot.want, false, false, std::move(waiting)});
    if (was_known) {
      const Lock lock(mutex_);
      make_known(*one);
    }
    runs.push_back(std::move(one));
  }
  for (RunPtr& one : runs) start(std::move(one));
}

Result<tree::NodePtr> NodeReads::take(const Run& run, const Slot& slot) {
  const BlockAddr address = slot.want.where();
  if (run.error) return Error(Errc::io, fmt::format("reading a tree node at block {} failed", address));
  AlignedBuffer block(kBlockSize);
  std::memcpy(block.data(), run.memory.data() + (address - run.first()) * kBlockSize, kBlockSize);
  tree::NodeCache& cache = parts_.trees.cache();
  tree::NodePtr node = TRY(cache.decode(slot.want, std::move(block)));
  if (slot.is_ahead) cache.insert_ahead(node, slot.want.ref.crc);
  else cache.insert(node, slot.want.ref.crc);
  return node;
}

// From now on nobody can join.
std::vector<NodeReads::Waiting> NodeReads::take_waiting(Slot& slot) {
  const Lock lock(mutex_);
  if (slot.is_known) under_way_.erase(slot.want.ref.address.v);
  slot.is_known = false;
  return std::move(slot.waiting);
}

void NodeReads::deliver(Slot& slot, const Result<tree::NodePtr>& node) {
  for (const Waiting& one : take_waiting(slot)) {
    if (node.ok()) one.answer->node = *node;
    else one.answer->error = node.error();
    one.waiter->came(WaitCause::node);
  }
}

// The reactor that would have brought it is gone, and with it the operations that waited there. Others ask again.
void NodeReads::give_up(Run& run) {
  forget_spare(run);
  for (Slot& slot : run.slots)
    for (const Waiting& one : take_waiting(slot))
      if (one.reactor != run.home) one.waiter->came({});
}

}  // namespace varve::operation
