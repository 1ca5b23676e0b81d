#include "store/store_parts.h"

#include <gtest/gtest.h>

#include <optional>

namespace varve::test {

namespace {
constexpr std::size_t kMostInFlight = 4u << 20, kCacheBytes = 4u << 20, kInodes = 10'000;

void write_node(io::BlockDevice& device, const format::MadeNode& node) {
  ASSERT_TRUE(device.write(node.address.v << kBlockShift, node.bytes).ok());
}
}  // namespace

format::EmptyFilesystem made_filesystem(std::uint64_t device_bytes) {
  SeededRandom random(1);
  format::MakeParameters make;
  make.device_blocks = device_bytes >> kBlockShift;
  make.segment_blocks = kPartSegmentBlocks;
  make.now = Timestamp{ManualClock::kStart / 1'000'000'000 - 1, 0};
  auto made = format::make_filesystem(make, random);
  EXPECT_TRUE(made.ok());
  return *std::move(made);
}

void write_filesystem(io::BlockDevice& device, const format::EmptyFilesystem& made) {
  for (const format::MadeNode& node : made.nodes) write_node(device, node);
  for (const format::MadeNode& super : format::superblocks_of(made)) write_node(device, super);
  ASSERT_TRUE(device.flush().ok());
}

StoreParts::StoreParts(io::BlockDevice& device, const format::Superblock& found)
    : super(found),
      io(device, false, clock),
      faults(io.device(), clock, super, false),
      log_clock(super.clock, super.clock_unit),
      segments(segments::SegmentGeometry{super.first_segment, super.segment_blocks, super.segments}),
      log(io, segments, super.identity, clock, kMostInFlight, 0),
      trees(io.device(), super, segments.geometry(), kCacheBytes),
      snapshots(log_clock),
      inodes(kInodes),
      changes(gate, segments.generation()),
      staging(changes, trees, snapshots, segments, inodes, clock, format::kMaxChunkRecordBytes, super.next_ino),
      charge(segments, trees, snapshots, changes, staging),
      space(space::SpaceParts{segments, log, gate, trees, snapshots, changes, staging, counters, memory_bytes, super.device, io.streams(),
                              false}) {}

void StoreParts::start(bool epoch_on_disk) {
  tree::BlockingSource source = trees.source(false);
  const tree::MapRoot& map = trees.own_view().free_map;
  const std::size_t bytes = map.shape.record_bytes;
  const Status loaded = tree::scan_map(source, map, [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
    for (std::uint64_t i = 0; i < records.size() / bytes; ++i)
      segments.load(SegmentId{first + i}, TRY(format::decode_segment_record(records.subspan(i * bytes, bytes))));
    return {};
  });
  ASSERT_TRUE(loaded.ok());
  for (const format::Run& run : {super.chain, super.next_run})
    if (run.blocks) segments.set_open(segments.geometry().segment_of(run.start), format::kGroupChain);
  if (super.node_head.rest.blocks) segments.set_open(segments.geometry().segment_of(super.node_head.rest.start), format::kGroupNodes);
  segments.finish_loading();
  const Gate::Closure closed(gate);
  log.start({super.chain, super.next_run, super.lsn, super.chain_crc}, kEpoch, epoch_on_disk);
}

Status StoreParts::make_log_durable() {
  Lsn last;
  {
    const Gate::Closure closed(gate);
    last = log.position().lsn;
  }
  std::optional<Status> durable;
  log.durability().when_durable(last, [&](Status status) { durable = std::move(status); });
  while (!durable) io.wait();
  return *durable;
}

}  // namespace varve::test
