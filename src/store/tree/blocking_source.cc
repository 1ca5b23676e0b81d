// A source of nodes that reads the device and waits for it.
#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "io/batch.h"
#include "store/tree/node_cache.h"

namespace varve::store {

namespace {

constexpr io::BatchLimits kPrefetch{~0ULL, 64, 64};
constexpr std::size_t kRunBlocks = 64;  // adjacent nodes read by one request: 256 KiB

bool fits(const NodePtr& node, std::uint32_t crc, const NodeWant& want) {
  return crc == want.ref.crc && node->header().tree == want.tree && node->header().level == want.level;
}

void sort_by_address(std::vector<NodeWant>& wants) {
  std::ranges::sort(wants, {}, [](const NodeWant& want) { return want.ref.address; });
  const auto is_same = [](const NodeWant& a, const NodeWant& b) { return a.ref.address == b.ref.address; };
  wants.erase(std::unique(wants.begin(), wants.end(), is_same), wants.end());
}

// How many of the wants, sorted by address, one request can read.
std::size_t run_length(std::span<const NodeWant> wants) {
  std::size_t n = 1;
  while (n < wants.size() && n < kRunBlocks && wants[n].ref.address == wants[0].ref.address + n) ++n;
  return n;
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
  return want.ref.address && want.ref.address.v < device_.geometry().blocks();
}

Result<NodePtr> BlockingSource::accept(const NodeWant& want, AlignedBuffer block) {
  const format::NodeExpectation expected{.identity = cache_.identity(),
                                         .address = want.ref.address,
                                         .crc = want.ref.crc,
                                         .tree = want.tree,
                                         .level = want.level};
  auto node = cache_reads_ ? cache_.insert(want, std::move(block)) : Node::decode(std::move(block), expected);
  if (!node.ok()) return Error(node.error().code(), fmt::format("{}: {}", device_.name(), node.error().message()));
  return node;
}

Result<NodePtr> BlockingSource::load(const NodeWant& want) {
  if (!is_on_device(want))
    return Error(Errc::corrupt, fmt::format("{}: {} has a node of level {} at block {}, which is not on the device",
                                            device_.name(), name_of(want.tree), want.level, want.ref.address));
  AlignedBuffer block(kBlockSize);
  io::IoRequest request;
  request.offset = want.ref.address.v << kBlockShift;
  request.add(block.data(), kBlockSize);
  if (const int error = device_.execute(request))
    return Error(errc_from_errno(error),
                 fmt::format("{}: reading a node of {}, level {}, at block {}: {}", device_.name(), name_of(want.tree),
                             want.level, want.ref.address, std::strerror(error)));
  return accept(want, std::move(block));
}

void BlockingSource::read_all(std::span<const NodeWant> wants, std::vector<Pins>& pins) {
  io::Batch batch(device_, kPrefetch);
  std::deque<std::vector<AlignedBuffer>> memory;  // of each run
  for (std::size_t n = 0; !wants.empty(); wants = wants.subspan(n)) {
    n = run_length(wants);
    auto& blocks = memory.emplace_back();
    // Decoding overlaps with the requests still in flight.
    io::IoRequest& request = batch.add(io::IoKind::read, wants.front().ref.address.v << kBlockShift,
                                       [this, &blocks, &pins, run = wants.first(n)](const io::IoRequest& came) {
                                         if (!came.error) take_run(run, blocks, pins);
                                       });
    for (std::size_t i = 0; i < n; ++i) {
      blocks.emplace_back(kBlockSize);
      request.add(blocks.back().data(), kBlockSize);
    }
  }
  (void)batch.run();  // what could not be read is an error when it is asked for by itself
}

void BlockingSource::take_run(std::span<const NodeWant> wants, std::vector<AlignedBuffer>& blocks, std::vector<Pins>& pins) {
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const NodeWant& want = wants[i];
    auto node = accept(want, std::move(blocks[i]));
    if (node.ok()) pins[want.level][want.ref.address] = {std::move(*node), want.ref.crc};
  }
}

}  // namespace varve::store
