// Blocks that cannot be read, or are damaged: they pin their segments and nothing else. Cleaning goes on beside them.
#include <algorithm>
#include <cctype>

#include "check/check.h"
#include "check/report.h"
#include "checkpoint/checkpoints.h"
#include "cleaner/registry.h"
#include "jobs/clean_job.h"
#include "model/bad_blocks.h"
#include "model/strategy_names.h"
#include "snapshots/snapshot_change.h"
#include "support/plugging.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

std::vector<std::string> strategies() {
  std::vector<std::string> names = every_strategy();
  names.push_back("threaded:small=compact");
  return names;
}

class BesideBadBlocks : public BadBlocks, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { start(GetParam()); }
  // Eight times the size of the device is written.
  void expect_room(const std::map<std::uint64_t, BlockAddr>& bad) {
    const Listener heard;
    const std::uint64_t errors = status().lifetime.errors;
    EXPECT_EQ(overwrite(4), "");
    const bool threaded = GetParam().starts_with("threaded");  // needs no cleaning until holes run short
    EXPECT_TRUE(!threaded || fixture_.clean(GetParam()).ok());
    EXPECT_EQ(overwrite(4), "");
    EXPECT_GT(status().segments_cleaned, 10U);
    EXPECT_LE(status().lifetime.errors - errors, bad.size());
    EXPECT_TRUE(status().lifetime.errors > errors || threaded) << "no bad block was met";
    EXPECT_EQ(heard.count("stays where it is"), status().lifetime.errors - errors) << heard.text();
    EXPECT_LE(heard.count("\n"), bad.size() + 5) << heard.text();
    EXPECT_FALSE(status().read_only) << status().read_only_reason;
    expect_content(bad);
  }
};

TEST_P(BesideBadBlocks, one_that_cannot_be_read) {
  const auto bad = choose(1);
  make_unreadable(bad.begin()->second);
  expect_room(bad);
}

TEST_P(BesideBadBlocks, forty_that_are_damaged) {
  const auto bad = choose(40);
  for (const auto& [block, address] : bad) flip_a_bit(address);
  expect_room(bad);
}

TEST_P(BesideBadBlocks, forty_that_cannot_be_read) {
  const auto bad = choose(40);
  for (const auto& [block, address] : bad) make_unreadable(address);
  expect_room(bad);
}

INSTANTIATE_TEST_SUITE_P(All, BesideBadBlocks, ::testing::ValuesIn(strategies()), name_of_strategy);

// When it is overwritten, its segment is like any other: nothing of it is remembered.
TEST_F(BadBlocks, a_segment_is_cleaned_again_when_its_bad_block_is_gone) {
  const auto bad = choose(1);
  const SegmentId segment = store().segments().geometry().segment_of(bad.begin()->second);
  make_unreadable(bad.begin()->second);
  ASSERT_EQ(overwrite(2), "");
  EXPECT_GT(store().segments().info(segment).live(), 0U);
  faulty_.heal();
  ASSERT_TRUE(fixture_.write(cold_, bad.begin()->first * kBlockSize, pattern_bytes(bad.begin()->first + 1, 0, kBlockSize)).ok());
  std::set<std::uint64_t> touched{store().segments().info(segment).touched};
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(overwrite(1), "");
    touched.insert(store().segments().info(segment).touched);
  }
  EXPECT_GT(touched.size(), 3U) << "it is not used any more";
  expect_content({});
}

// There is an end to it, and a message.
TEST_F(BadBlocks, nobody_waits_for_ever_on_a_device_that_does_not_answer) {
  const Listener heard;
  faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver});
  EXPECT_NE(overwrite(8), "");
  EXPECT_GT(heard.count("read"), 0U);
  EXPECT_EQ(heard.count("stays where it is"), 0U) << heard.text();
}

// A device that answers nothing says nothing about single blocks: there is an error and an end, and nothing is remembered.
TEST_F(BadBlocks, a_device_that_does_not_answer_is_no_collection_of_bad_blocks) {
  for (const char* strategy : {"copying", "hole-plugging", "compacting"}) {
    start(strategy);
    const std::uint64_t errors = status().lifetime.errors;
    faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver});
    jobs::CleanRequest request;
    request.strategy = strategy;
    for (std::uint64_t at = 0; at < kStretches * kStretch * kBlockSize / 2; at += kPieceBytes)
      if (!write(at, kPieceBytes)) break;
    (void)fixture_.fs().start_clean(request);
    EXPECT_EQ(fixture_.fs().clean_state().phase, jobs::CleanState::Phase::failed) << fixture_.fs().clean_state().reason;
    EXPECT_LE(status().lifetime.errors, errors + 1);
    ASSERT_FALSE(status().read_only) << status().read_only_reason;
    faulty_.heal();
    EXPECT_EQ(overwrite(2), "") << strategy;
    expect_content({});
  }
}

// They are in memory and the mount goes on, but when cleaning wants to move them they are read.
TEST_F(BadBlocks, a_node_that_cannot_be_read_pins_its_segment_like_a_block_of_a_file) {
  for (const char* strategy : {"copying", "hole-plugging", "compacting"}) {
    start(strategy);
    const std::vector<Ino> files = make_files(800);
    const auto leaves = leaves_between(files[10], files[790]);
    ASSERT_GT(leaves.size(), 2U);
    for (std::size_t i = 0; i < leaves.size(); i += 3) make_unreadable(leaves[i]);
    flip_a_bit(leaves[1]);
    const Listener heard;
    EXPECT_EQ(overwrite(4), "") << strategy;
    EXPECT_GT(faulty_.hits(), 0U) << "no bad node was met";
    EXPECT_LE(heard.count("\n"), 20U) << heard.text();
    EXPECT_FALSE(status().read_only) << status().read_only_reason;
    EXPECT_TRUE(fixture_.getattr(files[400]).ok());
    expect_content({});
    faulty_.heal();
  }
}

// What looks like a node of a snapshot may be one of the newest tree.
TEST_F(BadBlocks, a_node_that_cannot_be_read_stays_beside_a_snapshot) {
  const std::vector<Ino> files = make_files(800);
  const auto leaves = leaves_between(files[10], files[790]);
  ASSERT_GT(leaves.size(), 4U);
  ASSERT_TRUE(fixture_.snapshot({.kind = snapshots::SnapshotChange::Kind::create, .name = "one", .new_name = {}}).ok());
  make_unreadable(leaves[1]);
  flip_a_bit(leaves[2]);
  make_stale(leaves[3]);
  store().trees().cache().clear();
  std::set<SegmentId> segments;
  for (const BlockAddr leaf : leaves) segments.insert(store().segments().geometry().segment_of(leaf));
  const auto other = fixture_.make("/other", 0100644);
  ASSERT_TRUE(other.ok() && write(0, kPieceBytes));
  const Listener heard;
  EXPECT_TRUE(store().checkpoints().make({.evacuate = {segments.begin(), segments.end()}}).ok()) << status().read_only_reason;
  EXPECT_FALSE(status().read_only) << status().read_only_reason;
  EXPECT_GT(heard.count("nodes cannot be moved"), 0U) << heard.text();
  EXPECT_EQ(overwrite_bytes(kDeviceBytes / 8), "");
  expect_content({});
}

// Moving what it names would end in a checkpoint that cannot change it, and a filesystem that is read-only.
TEST_F(BadBlocks, what_is_named_by_a_leaf_that_cannot_be_read_stays) {
  for (const char* strategy : {"copying", "hole-plugging", "compacting"}) {
    start(strategy);
    const auto lost = fixture_.make("/lost", 0100644);
    ASSERT_TRUE(lost.ok());
    constexpr std::uint64_t kPieces = 400;  // each with an extent of its own, among what is overwritten
    for (std::uint64_t i = 0; i < kPieces; ++i) {
      ASSERT_TRUE(fixture_.write(lost->ino, 2 * i * kBlockSize, pattern_bytes(i, 0, kBlockSize)).ok());
      ASSERT_TRUE(write(i * kPieceBytes, kPieceBytes) && fixture_.seal().ok());
    }
    ASSERT_TRUE(fixture_.unmount().ok() && fixture_.mount().ok());  // nothing of it is in memory
    const auto leaves = leaves_between(Ino{lost->ino.v - 1}, Ino{lost->ino.v + 1});
    ASSERT_GT(leaves.size(), 1U);
    make_unreadable(leaves.front());
    const Listener heard;
    EXPECT_EQ(overwrite(4), "") << strategy;
    EXPECT_GT(heard.count("named by a tree node that cannot be read"), 0U) << strategy << ": it was not met; " << heard.text();
    EXPECT_FALSE(status().read_only) << strategy << ": " << status().read_only_reason;
    faulty_.heal();
    for (std::uint64_t i = 0; i < kPieces; ++i) {
      const auto read = fixture_.read(lost->ino, 2 * i * kBlockSize, kBlockSize);
      EXPECT_TRUE(read.ok() && *read == pattern_bytes(i, 0, kBlockSize)) << strategy << ": " << i;
    }
    expect_content({});
  }
}

// The cleaner has read it before it went, and the checkpoint has to read it again.
TEST_F(BadBlocks, a_part_of_the_reverse_map_that_goes_between_a_round_and_its_checkpoint) {
  const std::vector<Ino> files = make_files(800);
  const auto leaves = leaves_between(files[10], files[790]);
  ASSERT_GT(leaves.size(), 2U);
  const SegmentId segment = store().segments().geometry().segment_of(leaves[1]);
  tree::BlockingSource source = store().trees().source();
  const auto ref = tree::find_map_node(source, store().trees().own_view().reverse_map, leaves[1].v, 0);
  ASSERT_TRUE(ref.ok() && *ref);
  make_unreadable(ref->address);
  store().trees().cache().clear();
  ASSERT_TRUE(write(0, kPieceBytes));
  const SegmentId emptied[] = {segment};
  const Status made = store().checkpoints().make({.evacuate = {emptied, emptied + 1}});
  EXPECT_TRUE(made.ok()) << made.error().message();
  EXPECT_GT(faulty_.hits(), 0U);
  EXPECT_FALSE(status().read_only) << status().read_only_reason;
  expect_content({});
}

// Where a write was lost an older node stands, with a sum that is its own: not what the tree refers to, so not to be moved.
TEST_F(BadBlocks, a_node_that_is_another_than_its_tree_refers_to_pins_its_segment) {
  for (const char* strategy : {"copying", "hole-plugging", "compacting"}) {
    start(strategy);
    const std::vector<Ino> files = make_files(800);
    const auto leaves = leaves_between(files[10], files[790]);
    ASSERT_GT(leaves.size(), 2U);
    for (std::size_t i = 0; i < leaves.size(); i += 3) make_stale(leaves[i]);
    store().trees().cache().clear();
    const Listener heard;
    EXPECT_EQ(overwrite(4), "") << strategy;
    EXPECT_GT(heard.count("nodes cannot be moved"), 0U) << strategy << ": none was met";
    EXPECT_FALSE(status().read_only) << strategy << ": " << status().read_only_reason;
    EXPECT_GT(status().pinned_segments, 0U);
    expect_content({});
  }
}

// Whatever comes there, into holes or into what has been emptied: the next checkpoint has to change the map, and would fail.
TEST_F(BadBlocks, a_segment_is_left_alone_where_the_reverse_map_cannot_be_read) {
  for (const std::string& strategy : strategies()) {
    start(strategy);
    make_unreadable(reverse_leaf_beside_cold_blocks());
    store().trees().cache().clear();
    const std::uint64_t hits = faulty_.hits();
    const Listener heard;
    EXPECT_EQ(overwrite(4), "") << strategy;
    EXPECT_GT(faulty_.hits(), hits) << strategy << ": it was not met";
    EXPECT_FALSE(status().read_only) << strategy << ": " << status().read_only_reason;
    EXPECT_LE(heard.count("\n"), 20U) << heard.text();
    expect_content({});
    faulty_.heal();
  }
}

// As long as nobody has tried to empty them nothing is known of that.
TEST_F(BadBlocks, holes_are_no_destinations_where_the_reverse_map_cannot_be_read) {
  ASSERT_EQ(overwrite_bytes(kDeviceBytes / 3), "");  // it makes holes, and no cleaning takes the cold blocks away
  ASSERT_EQ(status().segments_cleaned, 0U);
  ASSERT_TRUE(checkpoint());
  make_unreadable(reverse_leaf_beside_cold_blocks());
  store().trees().cache().clear();
  std::vector<cleaner::SegmentFacts> sources, unmapped;
  cleaner::Mover mover(store());
  for (const cleaner::SegmentFacts& segment : plug_candidates(store())) {
    if (!mover.live_blocks(segment.id).ok()) unmapped.push_back(segment);
    else if (sources.size() < 4) sources.push_back(segment);
  }
  ASSERT_GT(unmapped.size(), 1U);
  cleaner::Plugger plugger(store(), mover, {.choice = 16});
  const auto plugged = plugger.run(sources, unmapped);
  ASSERT_TRUE(plugged.ok());
  EXPECT_FALSE(plugger.unmapped().empty());
  EXPECT_TRUE(store().checkpoints().make({.evacuate = plugged->emptied}).ok()) << status().read_only_reason;
  expect_content({});
}

// What lives beside the clean segment stays where it is from then on, since nobody knows whose it is; writing goes on.
TEST_F(BadBlocks, a_clean_segment_is_used_where_the_reverse_map_cannot_be_read) {
  for (const std::string& strategy : strategies()) {
    start(strategy);
    ASSERT_EQ(overwrite(1), "");
    ASSERT_TRUE(checkpoint());
    const auto leaves = reverse_leaves_of_clean_segments();
    ASSERT_FALSE(leaves.empty()) << strategy;
    for (const BlockAddr leaf : leaves) make_unreadable(leaf);
    store().trees().cache().clear();
    const std::uint64_t errors = status().lifetime.errors;
    const Listener heard;
    for (int i = 0; i < 200 && heard.count("a part of the reverse map is lost") == 0; ++i)
      ASSERT_TRUE(write(i * kPieceBytes, kPieceBytes) && checkpoint()) << strategy << ": " << status().read_only_reason;
    const bool threaded = strategy.starts_with("threaded");  // fills holes, where the map can be read
    EXPECT_TRUE(heard.count("a part of the reverse map is lost") > 0 || threaded) << strategy;
    faulty_.heal();  // as a device does that writes to another place what is written to a bad one
    EXPECT_EQ(overwrite(3), "") << strategy;
    EXPECT_TRUE(status().lifetime.errors > errors || threaded) << strategy;
    ASSERT_FALSE(status().read_only) << strategy << ": " << status().read_only_reason;
    expect_content({});
    ASSERT_TRUE(fixture_.unmount().ok()) << strategy;
    const auto report = check::check(memory_, {});
    ASSERT_TRUE(report.ok());
    for (const check::Problem& problem : report->problems.kept())
      EXPECT_EQ(problem.code, check::Code::reverse_map_wrong) << check::to_line(problem);
    ASSERT_TRUE(fixture_.mount().ok()) << strategy;
    EXPECT_EQ(overwrite(2), "") << strategy;
    expect_content({});
  }
}

// Not one block but the device: nothing of the map is given up then.
TEST_F(BadBlocks, the_reverse_map_is_not_given_up_because_the_device_does_not_answer) {
  ASSERT_EQ(overwrite(1), "");
  ASSERT_TRUE(checkpoint());
  ASSERT_TRUE(write(0, kPieceBytes));
  store().trees().cache().clear();
  const Listener heard;
  faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver});
  EXPECT_FALSE(checkpoint());
  EXPECT_EQ(heard.count("is lost"), 0U) << heard.text();
  faulty_.heal();
  expect_content({});
}

// A file of which nobody knows where it stands is no reason to leave the others in pieces.
TEST_F(BadBlocks, defragmenting_goes_on_after_a_file_whose_extents_cannot_be_read) {
  const auto last = fixture_.make("/last", 0100644);
  ASSERT_TRUE(last.ok());
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(fixture_.write(last->ino, i * kBlockSize, pattern_bytes(i, 0, kBlockSize)).ok());
    ASSERT_TRUE(write(i * kPieceBytes, kPieceBytes) && fixture_.seal().ok());
  }
  ASSERT_TRUE(fixture_.unmount().ok() && fixture_.mount().ok());  // nothing of it is in memory
  const auto leaves = leaves_between(cold_, last->ino);
  ASSERT_GT(leaves.size(), 2U);
  make_unreadable(leaves[1]);
  const auto pieces = [&] {
    const auto part = cleaner::read_layout(store(), last->ino, 0, 100);
    return part.ok() ? cleaner::count_fragments(part->blocks) : 0;
  };
  ASSERT_GT(pieces(), 20U);

  const Listener heard;
  jobs::CleanRequest request;
  request.strategy = "defragmenting";
  ASSERT_TRUE(fixture_.fs().start_clean(request).ok());
  const jobs::CleanState state = fixture_.fs().clean_state();
  EXPECT_EQ(state.phase, jobs::CleanState::Phase::finished) << state.reason;
  EXPECT_EQ(state.files.seen, 3U);
  EXPECT_EQ(state.files.unreadable, 1U) << state.reason;
  EXPECT_TRUE(state.reason.find("cannot be read: 1") != state.reason.npos) << state.reason;
  EXPECT_EQ(heard.count(fmt::format("inode {} cannot be defragmented", hot_)), 1U) << heard.text();
  EXPECT_TRUE(pieces() > 0 && pieces() < 4U) << pieces();
  EXPECT_FALSE(status().read_only) << status().read_only_reason;
}

// What is left of it is too little for a node of its own, and cannot be put together with its neighbours.
TEST_F(BadBlocks, a_leaf_that_is_emptied_between_bad_ones) {
  const std::vector<Ino> files = make_files(800);
  std::map<Ino, BlockAddr> leaves;
  for (const BlockAddr address : leaves_between(files[10], files[790])) leaves[first_of(address)] = address;
  ASSERT_GT(leaves.size(), 4U);
  const auto left = std::next(leaves.begin()), emptied = std::next(left), right = std::next(emptied);
  make_unreadable(left->second);
  make_unreadable(right->second);
  store().trees().cache().clear();
  const auto directory = fixture_.resolve("/d");
  ASSERT_TRUE(directory.ok());
  const auto unlink = [&](const std::string& name) {
    return fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, *directory, name); }).ok();
  };
  unsigned removed = 0;
  for (int i = 0; i < 800; ++i)
    if (files[i].v > emptied->first.v + 1 && files[i] < right->first) removed += unlink(fmt::format("{}", i));
  EXPECT_GT(removed, 5U);
  EXPECT_TRUE(checkpoint()) << status().read_only_reason;
  EXPECT_FALSE(status().read_only) << status().read_only_reason;
  faulty_.heal();
  for (const Ino file : files) EXPECT_TRUE(fixture_.getattr(file).ok() || (file > emptied->first && file < right->first)) << file.v;
  ASSERT_TRUE(fixture_.unmount().ok());
  const auto report = check::check(memory_, {});
  ASSERT_TRUE(report.ok());
  for (const check::Problem& problem : report->problems.kept()) ADD_FAILURE() << check::to_line(problem);
}

// The files behind it have nothing to do with it.
TEST_F(BadBlocks, defragmenting_goes_on_after_a_directory_that_cannot_be_read) {
  const auto directory = fixture_.make("/directory", 0040755);
  ASSERT_TRUE(directory.ok());
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(fixture_.make(fmt::format("/directory/a-name-of-some-length-{:04}", i), 0100644).ok());
  const auto last = fixture_.make("/last", 0100644);
  ASSERT_TRUE(last.ok());
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(fixture_.write(last->ino, i * kBlockSize, pattern_bytes(i, 0, kBlockSize)).ok());
    ASSERT_TRUE(write(i * kPieceBytes, kPieceBytes) && fixture_.seal().ok());
  }
  ASSERT_TRUE(fixture_.unmount().ok() && fixture_.mount().ok());  // nothing of it is in memory
  const auto leaves = leaves_between(Ino{directory->ino.v - 1}, Ino{directory->ino.v + 1});
  ASSERT_GT(leaves.size(), 3U);
  for (const BlockAddr leaf : leaves) make_unreadable(leaf);
  store().trees().cache().clear();
  const Listener heard;
  jobs::CleanRequest request;
  request.strategy = "defragmenting";
  ASSERT_TRUE(fixture_.fs().start_clean(request).ok());
  const jobs::CleanState state = fixture_.fs().clean_state();
  EXPECT_EQ(state.phase, jobs::CleanState::Phase::finished) << state.reason;
  EXPECT_EQ(state.files.unreadable_directories, 1U) << state.reason;
  EXPECT_TRUE(state.reason.find("directories that cannot be read: 1") != state.reason.npos) << state.reason;
  EXPECT_EQ(heard.count("its files are left out"), 1U) << heard.text();
  const auto part = cleaner::read_layout(store(), last->ino, 0, 100);
  ASSERT_TRUE(part.ok());
  EXPECT_LT(cleaner::count_fragments(part->blocks), 4U) << "the last file was not met";
  EXPECT_FALSE(status().read_only) << status().read_only_reason;
}

// New files fit in what is said to be free, and that comes to nothing when they do not fit any more.
TEST_F(BadBlocks, what_is_free_leaves_out_what_they_hold) {
  for (const std::string& strategy : strategies()) {
    start(strategy);
    const auto bad = choose(60);
    for (const auto& [block, address] : bad) flip_a_bit(address);
    ASSERT_EQ(overwrite(3), "") << strategy;
    const std::uint64_t promised = fixture_.available_bytes().value();
    const auto file = fixture_.make("/new", 0100644);
    ASSERT_TRUE(file.ok());
    std::uint64_t written = 0;
    while (written < kDeviceBytes && fixture_.write(file->ino, written, pattern_bytes(1, 0, kPieceBytes)).ok()) written += kPieceBytes;
    EXPECT_GE(written + kPieceBytes, promised) << strategy;
    EXPECT_LE(fixture_.available_bytes().value(), 1U << 20) << strategy;
    EXPECT_GT(written, 4U << 20) << strategy;
  }
}

// What was asked for is done as far as it can be, and the report says why not all of it.
TEST_F(BadBlocks, cleaning_that_is_asked_for_says_what_it_has_left_alone) {
  for (const char* strategy : {"copying", "compacting", "hole-plugging"}) {
    start(strategy);
    for (std::uint64_t at = 0; at < kStretches * kStretch * kBlockSize; at += kPieceBytes) ASSERT_TRUE(write(at, kPieceBytes));
    ASSERT_TRUE(checkpoint());
    const auto bad = choose(2);
    make_unreadable(bad.begin()->second);
    flip_a_bit(std::next(bad.begin())->second);
    jobs::CleanRequest request;
    request.strategy = strategy;
    std::uint64_t hits = 0;
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_TRUE(fixture_.fs().start_clean(request).ok());
      const jobs::CleanState state = fixture_.fs().clean_state();
      EXPECT_EQ(state.phase, jobs::CleanState::Phase::finished) << state.reason;
      EXPECT_TRUE(state.reason.ends_with("segments left alone because of bad blocks: 2")) << strategy << ": " << state.reason;
      EXPECT_EQ(status().pinned_segments, 2U);
      EXPECT_LE(status().pinned_garbage_blocks, 2 * (kSegmentBlocks - 1));
      if (turn == 0) hits = faulty_.hits();
      EXPECT_EQ(faulty_.hits(), hits) << strategy << ": it was read again";
    }
    const SegmentId segment = store().segments().geometry().segment_of(bad.begin()->second);
    EXPECT_LE(store().segments().info(segment).live(), 1U) << strategy << ": sound blocks were left there";
    faulty_.heal();
  }
}

}  // namespace
}  // namespace varve::test
