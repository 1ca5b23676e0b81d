// A source of nodes that reads the device and waits for it.
#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "io/batch.h"
#include "io/patient_read.h"
#include "tree/neighbours.h"

namespace varve::tree {

namespace {

constexpr io::BatchLimits kPrefetch{~0ULL, 64, 64};
constexpr std::uint64_t kBetween = 3;  // blocks read for nothing where seeks cost more; memory is taken for all of a batch

bool fits(const NodePtr& node, std::uint32_t crc, const NodeWant& want) {
  return crc == want.ref.crc && node->header().tree == want.tree && node->header().level == want.level;
}

AlignedBuffer copy_of(const std::byte* node) {
  AlignedBuffer block(kBlockSize);
  std::memcpy(block.data(), node, kBlockSize);
  return block;
}

void sort_by_address(std::vector<NodeWant>& wants) {
  std::ranges::sort(wants, {}, [](const NodeWant& want) { return want.where(); });
  const auto is_same = [](const NodeWant& a, const NodeWant& b) { return a.where() == b.where(); };
  wants.erase(std::unique(wants.begin(), wants.end(), is_same), wants.end());
}

}  // namespace

BlockingSource::BlockingSource(NodeCache& cache, io::BlockDevice& device, bool cache_reads)
    : cache_(cache),
      device_(device),
      cache_reads_(cache_reads),
      pins_(format::kMaxTreeLevel + 1) {}

Result<NodePtr> BlockingSource::get(const NodeWant& want) {
  if (NodePtr node = take_pinned(want)) return node;
  if (NodePtr node = cache_.find(want)) return node;
  return load(want);
}

Result<NodePtr> BlockingSource::get_child(const Siblings& siblings, std::uint8_t level) {
  const NodeWant want{siblings.child().ref, siblings.tree, level};
  if (NodePtr node = take_pinned(want)) return node;
  if (NodePtr node = cache_.find(want)) return node;
  if (cache_reads_ && is_on_device(want)) {
    const auto beside = neighbours_of(cache_, siblings, level, device_.geometry().rotational);
    if (!beside.empty()) read_ahead(want, beside);
  }
  return get(want);
}

void BlockingSource::prefetch(std::span<const NodeWant> wants) {
  std::vector<Pins> pins(pins_.size());
  std::vector<bool> renewed(pins_.size());
  std::vector<NodeWant> missing;
  for (const NodeWant& want : wants) {
    if (want.level >= pins_.size() || !is_on_device(want)) continue;
    renewed[want.level] = true;
    NodePtr node = take_pinned(want);
    if (!node) node = cache_.find(want);
    if (node) pins[want.level][want.ref.address] = {std::move(node), want.ref.crc};
    else missing.push_back(want);
  }
  for (std::size_t level = 0; level < pins_.size(); ++level)
    if (renewed[level]) pins_[level].clear();  // before reading, so that old and new are not held together
  sort_by_address(missing);
  read_all(missing, pins);
  for (std::size_t level = 0; level < pins_.size(); ++level)
    if (renewed[level]) pins_[level] = std::move(pins[level]);
}

NodePtr BlockingSource::take_pinned(const NodeWant& want) {
  if (want.level >= pins_.size()) return nullptr;
  Pins& pins = pins_[want.level];
  const auto at = pins.find(want.ref.address);
  if (at == pins.end() || !fits(at->second.node, at->second.crc, want)) return nullptr;
  NodePtr node = std::move(at->second.node);
  pins.erase(at);
  return node;
}

bool BlockingSource::is_on_device(const NodeWant& want) const {
  return want.where() && want.where().v < device_.geometry().blocks();
}

Result<NodePtr> BlockingSource::accept(const NodeWant& want, AlignedBuffer block) {
  auto node = cache_reads_ ? cache_.insert(want, std::move(block)) : cache_.decode(want, std::move(block));
  if (!node.ok()) return Error(node.error().code(), fmt::format("{}: {}", device_.name(), node.error().message()));
  return node;
}

Result<NodePtr> BlockingSource::load(const NodeWant& want) {
  if (!is_on_device(want))
    return Error(Errc::corrupt, fmt::format("{}: {} has a node of level {} at block {}, which is not on the device",
                                            device_.name(), name_of(want.tree), want.level, want.ref.address));
  AlignedBuffer block(kBlockSize);
  // A merge that cannot go on makes the filesystem read-only: an error that passes is no reason for that.
  if (const Status read = io::read_patiently(device_, want.where().v << kBlockShift, block.span()); !read.ok())
    return Error(read.error().code(), fmt::format("{}: reading a node of {}, level {}, at block {}: {}", device_.name(),
                                                  name_of(want.tree), want.level, want.ref.address, read.error().message()));
  return accept(want, std::move(block));
}

// What fails is left to get(), which says why.
void BlockingSource::read_ahead(const NodeWant& want, std::span<const NodeWant> beside) {
  std::vector<NodeWant> wants(beside.begin(), beside.end());
  std::erase_if(wants, [this](const NodeWant& other) { return !is_on_device(other); });
  wants.push_back(want);
  sort_by_address(wants);
  const std::uint64_t first = wants.front().ref.address.v, blocks = wants.back().ref.address.v - first + 1;
  AlignedBuffer memory(blocks * kBlockSize);
  io::IoRequest request;
  request.offset = first << kBlockShift;
  request.add(memory.data(), memory.size());
  if (device_.execute(request)) return;
  for (const NodeWant& one : wants) {
    auto node = cache_.decode(one, copy_of(memory.data() + (one.ref.address.v - first) * kBlockSize));
    if (!node.ok()) continue;
    if (one.ref.address == want.ref.address) cache_.insert(std::move(*node), one.ref.crc);
    else cache_.insert_ahead(std::move(*node), one.ref.crc);
  }
}

void BlockingSource::read_all(std::span<const NodeWant> wants, std::vector<Pins>& pins) {
  const std::uint64_t between = device_.geometry().rotational ? kBetween : 0;
  io::Batch batch(device_, kPrefetch);
  std::deque<AlignedBuffer> memory;  // of each run
  for (std::size_t n = 0; !wants.empty(); wants = wants.subspan(n)) {
    n = run_length(wants, between);
    const std::uint64_t first = wants.front().where().v, blocks = wants[n - 1].where().v - first + 1;
    AlignedBuffer& bytes = memory.emplace_back(blocks * kBlockSize);
    // Decoding overlaps with the requests still in flight.
    io::IoRequest& request = batch.add(io::IoKind::read, first << kBlockShift,
                                       [this, &bytes, &pins, run = wants.first(n)](const io::IoRequest& came) {
                                         if (!came.error) take_run(run, bytes, pins);
                                         bytes = {};
                                       });
    request.add(bytes.data(), bytes.size());
  }
  (void)batch.run();  // what could not be read is an error when it is asked for by itself
}

void BlockingSource::take_run(std::span<const NodeWant> wants, const AlignedBuffer& bytes, std::vector<Pins>& pins) {
  const std::uint64_t first = wants.front().where().v;
  for (const NodeWant& want : wants) {
    auto node = accept(want, copy_of(bytes.data() + (want.where().v - first) * kBlockSize));
    if (node.ok()) pins[want.level][want.ref.address] = {std::move(*node), want.ref.crc};
  }
}

}  // namespace varve::tree
