// Which holes HoleFeeder gives to heads, and when: over a free map that the test has written, and devices that fail.
#include "space/hole_feeder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "format/map_record.h"
#include "io/mem_device.h"
#include "segments/hole_pool.h"
#include "space/demand.h"
#include "store/store_parts.h"
#include "support/fault_device.h"

namespace varve::space {
namespace {

constexpr std::uint32_t kBlocks = test::kPartSegmentBlocks;
// An address in segment 0, behind what mkfs has written there: for the maps of the test.
constexpr std::uint64_t kMapAt = 16, kBadMapAt = 60;

class HoleFeederTest : public ::testing::Test {
 protected:
  HoleFeederTest() { test::write_filesystem(memory_, made_); }
  ~HoleFeederTest() override {
    if (parts_) {
      EXPECT_FALSE(parts_->faults.read_only() && !ends_read_only_) << "an invariant was broken";
    }
  }

  // Every block of the segment lives but those from `from` on, so many of them; asked again: and those.
  void use(std::uint64_t segment, std::uint32_t from, std::uint32_t free, std::uint8_t group = 0) {
    auto& live = live_.try_emplace(segment, std::vector<bool>(kBlocks, true)).first->second;
    for (std::uint32_t i = from; i < from + free; ++i) live[i] = false;
    groups_[segment] = group;
  }
  // Mounts what use() has said.
  void open() {
    use(0, 0, 0, format::kGroupNodes);
    format::Superblock super = made_.super;
    format::MapRecords records;
    for (const auto& [segment, live] : live_) records[segment] = record(segment, live);
    std::vector<format::MadeNode> nodes;
    super.free_map = format::write_map(format::TreeId::free_map, format::free_map_shape(super.segments, kBlocks), records,
                                       {super.identity, super.serial}, super.first_segment + kMapAt, nodes);
    for (const format::MadeNode& node : nodes) memory_.poke(node.address.v << kBlockShift, node.bytes);
    leaf_ = nodes.front().address;
    if (bad_reverse_map_) super.reverse_map.address = super.first_segment + kBadMapAt;
    super.live_blocks = 0;
    for (const auto& [segment, live] : live_) super.live_blocks += static_cast<std::uint64_t>(std::ranges::count(live, true));
    parts_.emplace(device_, super);
    parts_->start();
    feeder_.emplace(HoleFeeder::Parts{parts_->gate, parts_->segments, parts_->log, parts_->trees, parts_->charge, parts_->space,
                                      parts_->faults});
  }
  std::vector<std::byte> record(std::uint64_t segment, const std::vector<bool>& live) {
    std::vector<std::byte> bytes(format::segment_record_bytes(kBlocks));
    format::SegmentRecord header;
    header.group = groups_[segment];
    header.live = static_cast<std::uint32_t>(std::ranges::count(live, true));
    format::encode_segment_record(header, bytes);
    for (std::uint32_t i = 0; i < kBlocks; ++i)
      if (live[i]) bytes[format::kSegmentRecordHeaderBytes + i / 8] |= static_cast<std::byte>(1U << (i % 8));
    return bytes;
  }
  void begin(const HoleFeederRules& rules = {}) { feeder_->begin(this, rules); }

  std::uint64_t ready() {
    const Gate::Pass pass(parts_->gate);
    return parts_->log.heads().holes().blocks();
  }
  // Takes so many blocks as heads do. Each is free in the map, and is taken once. Returns how many there were.
  std::uint64_t take(std::uint64_t blocks) {
    const Gate::Closure closed(parts_->gate);
    const segments::SegmentGeometry geometry = parts_->segments.geometry();
    std::uint64_t got = 0;
    while (got < blocks) {
      const format::Run run = parts_->log.heads().allocate_in_hole(static_cast<std::uint32_t>(blocks - got));
      if (!run.blocks) break;
      for (std::uint32_t i = 0; i < run.blocks; ++i) {
        const BlockAddr at = run.start + i;
        EXPECT_FALSE(live_.at(geometry.segment_of(at).v)[geometry.index_of(at)]) << "it lives in the settled checkpoint";
        EXPECT_TRUE(taken_.insert(at).second) << "handed out twice";
      }
      got += run.blocks;
    }
    return got;
  }
  segments::SegmentState state(std::uint64_t segment) { return parts_->segments.info(SegmentId{segment}).state; }
  bool is_open(std::uint64_t segment) { return state(segment) == segments::SegmentState::refilling; }
  std::set<std::uint64_t> opened() {
    std::set<std::uint64_t> found;
    for (const auto& [segment, live] : live_)
      if (is_open(segment)) found.insert(segment);
    return found;
  }
  // So much is staged that a checkpoint needs all that is clean.
  void stage_places(std::uint64_t places) {
    const Gate::Pass pass(parts_->gate);
    parts_->changes.active().burden(places, places * 1024);
  }
  void freeze() {
    const Gate::Closure closed(parts_->gate);
    feeder_->freeze();
  }

  io::MemDevice memory_{test::kPartDeviceBytes};
  test::FaultDevice device_{memory_};
  const format::EmptyFilesystem made_ = test::made_filesystem();
  std::map<std::uint64_t, std::vector<bool>> live_;
  std::map<std::uint64_t, std::uint8_t> groups_;
  std::set<BlockAddr> taken_;
  BlockAddr leaf_;  // of the free map
  bool bad_reverse_map_ = false, ends_read_only_ = false;
  std::optional<test::StoreParts> parts_;
  std::optional<HoleFeeder> feeder_;
};

// --- which holes ------------------------------------------------------------------------------------------------------------------

TEST_F(HoleFeederTest, OpensWhatIsFreeAndLeavesOutWhatIsTooSmall) {
  use(10, 0, 4);    // at the beginning
  use(10, 20, 3);   // too small
  use(10, 60, 4);   // at the end
  use(11, 5, 30);
  use(12, 0, 0);    // full
  use(13, 7, 3);    // nothing that is large enough
  open();
  begin({.least_run = 4});
  EXPECT_TRUE(feeder_->is_hungry());
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(ready(), 4U + 4 + 30);
  EXPECT_EQ(opened(), (std::set<std::uint64_t>{10, 11}));
  EXPECT_EQ(take(1000), 38U);
  EXPECT_EQ(opened(), std::set<std::uint64_t>{}) << "what is full is closed";
}

TEST_F(HoleFeederTest, NodesAndWhatWasWrittenSinceTheCheckpointAreLeftAlone) {
  use(10, 0, 30, format::kGroupNodes);
  use(11, 0, 30);
  use(12, 0, 30);
  open();
  parts_->segments.touch(parts_->segments.geometry().start_of(SegmentId{11}) + 3);
  begin();
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(opened(), std::set<std::uint64_t>{12});
}

TEST_F(HoleFeederTest, GoesOnBehindTheLastOneAndRoundTheEnd) {
  const std::uint64_t last = made_.super.segments - 1;
  for (const std::uint64_t segment : {std::uint64_t{10}, std::uint64_t{20}, last}) use(segment, 0, 40);
  open();
  begin();
  parts_->segments.touch(parts_->segments.geometry().start_of(SegmentId{10}));
  parts_->segments.touch(parts_->segments.geometry().start_of(SegmentId{20}));
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(opened(), std::set<std::uint64_t>{last});
  EXPECT_EQ(feeder_->cursor(), SegmentId{0});
}

TEST_F(HoleFeederTest, ManySegmentsWithLittleInThemAreOpenedUpToABound) {
  for (std::uint64_t segment = 10; segment < 100; ++segment) use(segment, 0, 4);
  open();
  const std::uint64_t most = parts_->segments.geometry().count / 8;
  begin();
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(opened().size(), most) << "open ones cannot be cleaned";
  EXPECT_EQ(feeder_->cursor(), SegmentId{10 + most});
  EXPECT_FALSE(feeder_->feed()) << "there are enough";
  EXPECT_FALSE(feeder_->is_hungry());
  take(4 * (most - most / 2 - 1));
  EXPECT_FALSE(feeder_->is_hungry());
  take(4);
  EXPECT_TRUE(feeder_->is_hungry()) << "half of them is left";
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(opened().size(), most);
  EXPECT_FALSE(is_open(10)) << "that one was full";
}

TEST_F(HoleFeederTest, EnoughBlocksAreEnoughSegments) {
  for (std::uint64_t segment = 10; segment < 40; ++segment) use(segment, 0, 60);
  open();
  begin();
  EXPECT_TRUE(feeder_->feed());
  const std::uint64_t wanted = parts_->charge.capacity_blocks() / 64;
  EXPECT_GE(ready(), wanted);
  EXPECT_LT(ready(), wanted + 60);
}

// --- when -------------------------------------------------------------------------------------------------------------------------

TEST_F(HoleFeederTest, TheOwnerThatBeganLastSetsTheRulesUntilItEnds) {
  use(10, 0, 30);
  open();
  const std::uint64_t clean = parts_->segments.clean();
  EXPECT_FALSE(feeder_->is_hungry()) << "nobody has begun";
  int first = 0, second = 0;
  feeder_->begin(&first, {.below = clean, .most_piece = 7});
  EXPECT_TRUE(feeder_->is_hungry());
  EXPECT_EQ(feeder_->most_piece(), 7U);
  feeder_->begin(&second, {.below = clean - 1, .most_piece = 9, .spares_cleaning = true});
  EXPECT_FALSE(feeder_->is_hungry()) << "there are more clean segments than that";
  EXPECT_FALSE(feeder_->spares_cleaning());
  EXPECT_EQ(feeder_->most_piece(), 9U);
  parts_->segments.take(0);
  EXPECT_TRUE(feeder_->is_hungry());
  EXPECT_TRUE(feeder_->spares_cleaning());
  feeder_->end(&first);
  EXPECT_EQ(feeder_->most_piece(), 9U);
  feeder_->begin(&first, {.most_piece = 7});
  feeder_->begin(&first, {.most_piece = 8});
  feeder_->end(&first);
  EXPECT_EQ(feeder_->most_piece(), 9U) << "what began twice has ended";
  feeder_->end(&second);
  EXPECT_FALSE(feeder_->is_hungry());
  EXPECT_FALSE(feeder_->feed());
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
}

TEST_F(HoleFeederTest, WhereNothingWasFoundOnlyANewCheckpointMakesItHungry) {
  use(10, 0, 3);
  open();
  begin({.least_run = 4, .spares_cleaning = true});
  EXPECT_TRUE(feeder_->is_hungry());
  EXPECT_FALSE(feeder_->feed());
  EXPECT_FALSE(feeder_->is_hungry());
  EXPECT_FALSE(feeder_->spares_cleaning()) << "somebody has to clean";
  parts_->log.note_settled(Serial{2});
  EXPECT_TRUE(feeder_->is_hungry());
  EXPECT_FALSE(feeder_->feed());
  begin({.least_run = 3});
  EXPECT_TRUE(feeder_->is_hungry()) << "by other rules there may be some";
  EXPECT_TRUE(feeder_->feed());
}

TEST_F(HoleFeederTest, OpensNoneWhereACheckpointMayNeedAllThatIsClean) {
  use(10, 0, 40);
  open();
  begin();
  stage_places(100'000);
  EXPECT_FALSE(feeder_->feed());
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
  EXPECT_EQ(ready(), 0U);
}

TEST_F(HoleFeederTest, AReadOnlyFilesystemIsNotHungry) {
  use(10, 0, 40);
  open();
  begin();
  ends_read_only_ = true;
  parts_->faults.go_read_only(Error(Errc::io, "the device has gone"));
  EXPECT_FALSE(feeder_->is_hungry());
}

TEST_F(HoleFeederTest, RoomIsWhatIsFreeInUsedSegmentsWhileThatSparesCleaning) {
  use(10, 0, 40);
  use(11, 0, 2);
  open();
  begin();
  EXPECT_EQ(feeder_->room(), 0U);
  begin({.spares_cleaning = true});
  const std::uint64_t open_ones = parts_->segments.end().in_use() - 3;  // chain and nodes; not segment 0, which is full
  EXPECT_EQ(feeder_->room(), 42U + open_ones * kBlocks);
}

// --- checkpoints and stale holes ------------------------------------------------------------------------------------------------

TEST_F(HoleFeederTest, AFreezeClosesWhatWasBegunAndKeepsTheOthers) {
  use(10, 0, 40);
  use(11, 0, 40);
  open();
  begin();
  EXPECT_TRUE(feeder_->feed());
  EXPECT_EQ(take(5), 5U);
  freeze();
  EXPECT_EQ(opened(), std::set<std::uint64_t>{11}) << "one segment is written by one checkpoint";
  EXPECT_EQ(ready(), 40U);
  feeder_->end(this);
  EXPECT_EQ(ready(), 40U) << "operations may have been let in because of these";
  freeze();
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
}

TEST_F(HoleFeederTest, AFreezeClosesAllWhereCleaningWouldLackTheRoomForThem) {
  use(10, 0, 40);
  use(11, 0, 40);
  open();
  begin();
  EXPECT_TRUE(feeder_->feed());
  stage_places(100'000);
  freeze();
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
  EXPECT_EQ(ready(), 0U);
}

TEST_F(HoleFeederTest, ASegmentsWorthThatDiedInOpenOnesIsGivenToTheCleaner) {
  for (const std::uint64_t segment : {10, 11, 12}) {
    use(segment, 0, 20);
    use(segment, 30, 2);  // too small: that it is free is no news
  }
  open();
  begin();
  EXPECT_TRUE(feeder_->feed());
  const auto die = [&](std::uint64_t segment, std::uint32_t blocks) {
    parts_->segments.sub_live(parts_->segments.geometry().start_of(SegmentId{segment}) + 40, blocks);
  };
  die(10, 20);
  die(11, 20);
  die(12, 20);
  EXPECT_FALSE(feeder_->give_up_stale());
  die(10, 3);
  EXPECT_FALSE(feeder_->give_up_stale()) << "a block less than a segment";
  EXPECT_EQ(opened().size(), 3U);
  die(10, 1);
  EXPECT_TRUE(feeder_->give_up_stale());
  EXPECT_EQ(opened().size(), 0U);
  EXPECT_EQ(ready(), 0U);
  EXPECT_TRUE(feeder_->is_hungry());
}

TEST_F(HoleFeederTest, StaleHolesStayIfSomebodyWasLetInBecauseOfThem) {
  use(10, 0, 20);
  use(11, 0, 20);
  open();
  begin();
  EXPECT_TRUE(feeder_->feed());
  for (const std::uint64_t segment : {10, 11})
    parts_->segments.sub_live(parts_->segments.geometry().start_of(SegmentId{segment}) + 20, 44);
  const Demand demand{.payload = 30};
  {
    const Gate::Pass pass(parts_->gate);
    while (parts_->space.has_room_without_holes()) parts_->segments.take(0);
    ASSERT_EQ(parts_->space.admit(demand), Space::Room::granted);
  }
  EXPECT_FALSE(feeder_->give_up_stale());
  EXPECT_EQ(opened().size(), 2U);
  {
    const Gate::Pass pass(parts_->gate);
    parts_->space.withdraw(demand);
  }
  EXPECT_TRUE(feeder_->give_up_stale());
}

// --- devices that fail ------------------------------------------------------------------------------------------------------------

TEST_F(HoleFeederTest, AMapThatCannotBeReadGivesNoHoles) {
  use(10, 0, 40);
  open();
  begin();
  device_.add({.kind = io::IoKind::read, .times = test::Fault::kForEver, .touches_block = leaf_.v});
  EXPECT_FALSE(feeder_->feed());
  EXPECT_GT(device_.hits(), 0U);
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
  device_.heal();
  EXPECT_FALSE(parts_->faults.read_only()) << "nobody has lost anything by it";
  EXPECT_TRUE(feeder_->feed());
}

TEST_F(HoleFeederTest, WhereTheReverseMapIsDamagedNoHoleIsWrittenAndItIsReadAgainOnlyWhenTheSegmentChanges) {
  use(10, 0, 40);
  bad_reverse_map_ = true;
  open();
  begin();
  EXPECT_FALSE(feeder_->feed()) << "the next checkpoint would have to enter what comes there";
  EXPECT_EQ(opened(), std::set<std::uint64_t>{});
  const auto reads = [&] { return device_.submitted(io::IoKind::read); };
  const std::uint64_t before = reads();
  EXPECT_FALSE(feeder_->feed());
  EXPECT_EQ(reads(), before);
  parts_->segments.sub_live(parts_->segments.geometry().start_of(SegmentId{10}) + 50, 1);
  EXPECT_FALSE(feeder_->feed());
  EXPECT_GT(reads(), before);
}

}  // namespace
}  // namespace varve::space
