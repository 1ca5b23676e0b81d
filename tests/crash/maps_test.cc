// Rules of the design review about the maps that checkpoints keep of the device: what lives, and whose it is.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "format/map_record.h"
#include "fs/engine.h"
#include "segments/counters.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"
#include "tree/map_tree.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

// As the last checkpoint has written both maps.
Result<std::set<BlockAddr>> live_blocks(store::Store& store) {
  tree::BlockingSource source = store.trees().source();
  const auto& geometry = store.segments().geometry();
  const std::size_t record_bytes = store.trees().own_view().free_map.shape.record_bytes;
  std::set<BlockAddr> live;
  const auto visit = [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
    for (std::uint64_t i = 0; (i + 1) * record_bytes <= records.size(); ++i) {
      const auto bits = records.subspan(i * record_bytes + format::kSegmentRecordHeaderBytes);
      for (std::uint32_t b = 0; b < geometry.blocks; ++b)
        if (std::to_integer<unsigned>(bits[b / 8]) >> b % 8 & 1) live.insert(geometry.start_of(SegmentId{first + i}) + b);
    }
    return {};
  };
  TRY(tree::scan_map(source, store.trees().own_view().free_map, visit));
  return live;
}

Result<std::map<BlockAddr, format::ReverseEntry>> owners_of_live_blocks(store::Store& store) {
  const auto live = TRY(live_blocks(store));
  tree::BlockingSource source = store.trees().source();
  std::map<BlockAddr, format::ReverseEntry> owners;
  const auto visit = [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
    for (std::uint64_t i = 0; (i + 1) * format::kReverseEntryBytes <= records.size(); ++i) {
      if (!live.contains(BlockAddr{first + i})) continue;
      owners[BlockAddr{first + i}] = TRY(
          format::decode_reverse_entry(records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes)));
    }
    return {};
  };
  TRY(tree::scan_map(source, store.trees().own_view().reverse_map, visit));
  return owners;
}

// The nodes of the maps stand in blocks that the maps must know, too: now and then these are in a part that nothing else
// has touched.
TEST(Hazards, H20_maps_know_their_own_nodes) {
  World world({.bytes = 64u << 20, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  const Ino file = world.fixture.make("/f", 0100644)->ino;
  for (std::size_t round = 0; round < 60; ++round) {
    const std::vector<std::byte> content((8u << 20) - round * 4096, std::byte{1});
    ASSERT_TRUE(world.fixture.write(file, 0, content).ok());
    const Status made = world.fixture.checkpoint();
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(world.device)));
}

// Blocks of a file that has nothing but these, overwritten piece by piece, and what the reverse map says of them.
class ReverseMap : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 1500, kPiece = 6;

  void SetUp() override {
    ASSERT_TRUE(good(world_.start()));
    const std::string made = fmt::format("create /f 0644; write /f 0 {} 1", kBlocks * kBlockSize);
    ASSERT_TRUE(good(run_script(world_.steps, script(made))));
  }
  void overwrite(std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i, ++writes_) {
      const std::string write = fmt::format("write /f {} {} {}; seal", writes_ * 53 % (kBlocks - kPiece) * kBlockSize,
                                            kPiece * kBlockSize, writes_ + 2);
      ASSERT_TRUE(good(run_script(world_.steps, script(write))));
    }
  }
  std::uint64_t written_into_holes() { return world_.fixture.store().counters().refilled_blocks; }
  // Each block of the file has one entry, with the checksum of what is read there.
  void expect_owners() {
    const auto owners = owners_of_live_blocks(world_.fixture.store());
    ASSERT_TRUE(owners.ok()) << owners.error().message();
    const auto file = world_.fixture.resolve("/f");
    ASSERT_TRUE(file.ok());
    std::set<std::uint64_t> found;
    for (const auto& [address, entry] : *owners) {
      EXPECT_NE(entry.owner, format::Owner::none) << address.v;
      if (entry.owner != format::Owner::file_block) continue;
      EXPECT_EQ(entry.ino, *file);
      EXPECT_TRUE(found.insert(entry.block).second) << "block " << entry.block << " has two places";
      const auto content = world_.fixture.read(*file, entry.block * kBlockSize, kBlockSize);
      ASSERT_TRUE(content.ok()) << content.error().message();
      EXPECT_EQ(entry.crc, crc32c(*content)) << "block " << entry.block;
    }
    EXPECT_EQ(found.size(), kBlocks);
  }

  World world_{WorldParameters{.bytes = 12u << 20, .image = {}, .lockstep = {}, .options = [](fs::Options& o) {
                                 o.strategy = "threaded";
                               }}};
  std::uint64_t writes_ = 0;
};

// Only checkpoints write the map, for what lives then, and nothing does between two of them. A block may have been written meanwhile, at a
// head, into a hole or by the cleaner, and come from the log after a crash. The next checkpoint knows its owner.
TEST_F(ReverseMap, H36_is_written_by_checkpoints) {
  for (int round = 0; round < 100 && !written_into_holes(); ++round) {
    overwrite(40);
    ASSERT_TRUE(world_.fixture.work().ok());
    ASSERT_TRUE(world_.fixture.checkpoint().ok());
  }
  expect_owners();
  ASSERT_TRUE(world_.fixture.work().ok());  // which looks for holes
  store::Store& store = world_.fixture.store();
  const std::uint64_t nodes = store.counters().node_blocks, in_holes = written_into_holes();
  const auto map = store.trees().own_view().reverse_map.ref;
  overwrite(12);
  ASSERT_TRUE(world_.fixture.move(0).ok());
  ASSERT_TRUE(world_.fixture.seal().ok());
  EXPECT_EQ(store.counters().node_blocks, nodes);
  EXPECT_EQ(store.trees().own_view().reverse_map.ref, map);
  EXPECT_GT(written_into_holes(), in_holes);
  ASSERT_TRUE(good(run_script(world_.steps, script("fsync /f"))));
  world_.fixture.crash();
  ASSERT_TRUE(world_.fixture.mount().ok());
  EXPECT_GT(world_.fixture.store().counters().replayed_chunks, 12U);
  ASSERT_TRUE(world_.fixture.checkpoint().ok());
  expect_owners();
}

// Nodes die together, so they stand together: no segment holds both nodes and blocks of files.
TEST(Hazards, H37_nodes_have_segments_of_their_own) {
  World world({.bytes = 16u << 20, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; create /g 0644"))));
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        good(run_script(world.steps, script(fmt::format("write /f {} 4096 {}; write /g {} 90000 {}; work",
                                                        i * 53 % 400 * 8192, i + 1, i % 20 * 90000, i + 1000)))));
    if (i % 5 == 0) {
      ASSERT_TRUE(world.fixture.checkpoint().ok());
    }
  }
  ASSERT_TRUE(world.fixture.checkpoint().ok());
  store::Store& store = world.fixture.store();
  const auto owners = owners_of_live_blocks(store);
  ASSERT_TRUE(owners.ok()) << owners.error().message();
  std::map<std::uint64_t, std::set<bool>> kinds;  // segment: whether it has files' blocks, nodes
  for (const auto& [address, entry] : *owners)
    kinds[store.segments().geometry().segment_of(address).v].insert(entry.owner == format::Owner::file_block);
  EXPECT_GT(kinds.size(), 5U);
  for (const auto& [segment, found] : kinds) EXPECT_EQ(found.size(), 1U) << "segment " << segment << " holds both";
}

}  // namespace
}  // namespace varve::test
