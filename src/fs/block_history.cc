#include "fs/block_history.h"

#include <algorithm>

#include "base/invariant.h"
#include "cleaner/cleaner.h"
#include "cleaner/placement.h"
#include "format/estimate.h"
#include "segments/log_clock.h"

namespace varve::fs {

namespace {

using Kind = changes::MappedBlock::Kind;

class CachedNodes : public tree::NodeSource {
 public:
  explicit CachedNodes(tree::NodeCache& cache) : cache_(cache) {}
  Result<tree::NodePtr> get(const tree::NodeWant& want) override {
    if (tree::NodePtr node = cache_.find(want)) return node;
    return Errc::would_block;
  }
  void prefetch(std::span<const tree::NodeWant>) override {}

 private:
  tree::NodeCache& cache_;
};

std::uint8_t group_of(store::Store& store, const changes::MappedBlock& old) {
  if (old.kind == Kind::pending) return old.pending->group;
  return store.segments().info(store.segments().geometry().segment_of(old.address)).group;
}

}  // namespace

void look_up_cached(Attempt& a, const changes::Inode& inode, std::uint64_t first, Ownership& owned) {
  CachedNodes source(a.store().trees().cache());
  static_cast<void>(changes::resolve_in_tree(inode.ino, a.view(), source, first, owned.all_old()));  // as far as it comes
}

void place_blocks(Attempt& a, const changes::Inode& inode, std::span<changes::StageBlock> blocks, std::uint64_t clock) {
  store::Store& store = a.store();
  const std::uint32_t now = store.log_clock().units(clock);
  const auto unit = static_cast<double>(store.super().clock_unit);
  double interval = 0, before = 0;
  unsigned known = 0, estimated = 0;
  cleaner::WrittenBlock written;
  for (const changes::StageBlock& block : blocks) {
    if (!block.old.is_block()) continue;
    interval += std::max(format::age_of(now, block.old.clock), 1u);
    ++known;
    if (block.old.estimate) before += format::decode_interval(block.old.estimate), ++estimated;
    if (known == 1) written.group = group_of(store, block.old);
  }
  std::uint8_t estimate = 0;
  if (known) {
    interval /= known;
    const std::uint8_t old_estimate = estimated ? format::encode_interval(before / estimated) : 0;
    estimate = format::next_estimate(old_estimate, interval);
    written.interval = static_cast<std::uint64_t>(interval * unit);
    written.previous_estimate = format::decode_interval(old_estimate) * unit;
    written.estimate = format::decode_interval(estimate) * unit;
  }
  written.key = (inode.ino.v << 40) + blocks[0].block;
  written.blocks = static_cast<std::uint32_t>(blocks.size());
  written.clock = clock;
  MEMORY_INVARIANT(!blocks.empty());
  const std::uint8_t group = cleaner::place(a.operations().cleaner().placement(), written);
  MEMORY_INVARIANT(group < format::kMaxGroups);
  for (changes::StageBlock& block : blocks) {
    block.estimate = estimate;
    block.data->group = group;
  }
}

}  // namespace varve::fs
