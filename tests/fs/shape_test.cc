// Punching, truncating and seeking where what is asked for is not in memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "fs/engine.h"
#include "io/mem_device.h"
#include "operation/wait.h"
#include "store/store.h"
#include "support/mounted_test.h"
#include "tree/node_cache.h"
#include "tree/trees.h"

namespace varve::fs {
namespace {

// What the attempt before has asked for.
bool reads_anything(Operation& operation) {
  const operation::Wait& wait = operation.wait();
  return !wait.nodes.empty() || std::ranges::any_of(wait.reads, [](const operation::DataRead& read) { return !read.started; });
}

using test::FsFixture;
using Bytes = std::vector<std::byte>;

// Blocks in an order in which no neighbours come to stand together, so that each is an extent.
constexpr std::uint64_t kScattered = 8000, kStride = 7;
constexpr std::uint64_t kEveryOther = 2 * kScattered * kBlockSize;  // bytes

class Shape : public test::MountedTest {
 protected:
  store::Store& store() { return fixture_.store(); }
  Ino make_file(std::string_view path, const Bytes& content) {
    const Ino file = fixture_.make(path, S_IFREG | 0644)->ino;
    EXPECT_TRUE(fixture_.write(file, 0, content).ok());
    return file;
  }

  Ino make_scattered(std::string_view path) {
    const Ino file = fixture_.make(path, S_IFREG | 0644)->ino;
    const Bytes block(kBlockSize, std::byte{'x'});
    for (std::uint64_t start = 0; start < kStride; ++start)
      for (std::uint64_t at = start; at < kScattered; at += kStride)
        EXPECT_TRUE(fixture_.write(file, at << kBlockShift, block).ok());
    return file;
  }
  // With changes that its trees do not know yet, and no node in memory.
  Ino make_changed(std::string_view path) {
    const Ino file = make_scattered(path);
    remount();
    for (std::uint64_t at = 100; at < kScattered; at += 100)
      EXPECT_TRUE(fixture_.write(file, at << kBlockShift, Bytes(kBlockSize)).ok());
    store().trees().cache().clear();
    return file;
  }
  static Ino make_every_other(FsFixture& fixture, std::string_view path) {
    const Ino file = fixture.make(path, S_IFREG | 0644)->ino;
    for (std::uint64_t at = 0; at < kScattered; ++at)
      EXPECT_TRUE(fixture.write(file, at * 2 * kBlockSize, Bytes(kBlockSize)).ok());
    return file;
  }
  // Instead of content; each block apart, so that none becomes part of its neighbour's extent.
  bool reserve_each(Ino file) {
    for (std::uint64_t at = 0; at <= kScattered; ++at) {
      const auto mode = at % 2 ? FallocateMode::punch_hole : FallocateMode::zero_range;
      const auto reserve = [&](Operation& op) { return fixture_.fs().fallocate(op, file, mode, at << kBlockShift, kBlockSize); };
      if (!fixture_.call(reserve).ok()) return false;
    }
    return true;
  }
};

TEST_F(Shape, seeking_in_a_cold_file_goes_on_where_it_was) {
  const Ino file = make_scattered("/f");
  const std::uint64_t end = (kScattered + 1) << kBlockShift;
  AttrChange change;
  change.size = end + 100 * kBlockSize;
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok());
  ASSERT_TRUE(fixture_.write(file, end, Bytes(kBlockSize)).ok());
  remount();
  const std::uint64_t leaves = kScattered / 250;  // at least
  for (const SeekKind kind : {SeekKind::hole, SeekKind::data}) {
    if (kind == SeekKind::data) {  // the same way, through blocks that are reserved only
      ASSERT_TRUE(reserve_each(file));
      remount();
    }
    store().trees().cache().clear();
    const std::uint64_t gets = store().trees().cache().hits() + store().trees().cache().misses();
    Operation operation(fixture_.fs().operations(), {});
    unsigned attempts = 1;
    auto found = fixture_.fs().seek(operation, file, 0, kind);
    for (; found.fails_with(Errc::would_block); found = fixture_.fs().seek(operation, file, 0, kind)) {
      EXPECT_LE(operation.wait().pins.size(), 20u) << "nodes behind it are let go";
      ++attempts;
      operation.block();
    }
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(*found, kind == SeekKind::hole ? kScattered << kBlockShift : end);
    EXPECT_LE(attempts, leaves / 4) << "leaves are fetched many at a time";
    EXPECT_LE(store().trees().cache().hits() + store().trees().cache().misses() - gets, 60 * leaves);
  }
}

TEST_F(Shape, seeking_lets_others_have_their_turn) {
  io::MemDevice device(512u << 20);
  ASSERT_TRUE(test::make_image(device, {}).ok());
  FsFixture fixture(device, test::test_options(clock_, random_));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
  const Bytes content(1 << 20);
  for (std::uint64_t at = 0; at < 300; ++at) ASSERT_TRUE(fixture.write(file, at << 20, content).ok());
  Operation operation(fixture.fs().operations(), {});
  const auto seek = [&] { return fixture.fs().seek(operation, file, 0, SeekKind::hole); };
  const auto first = seek();
  ASSERT_TRUE(first.fails_with(Errc::would_block)) << "no attempt looks at 300 MiB";
  EXPECT_FALSE(reads_anything(operation));
  operation.block();
  EXPECT_EQ(*seek(), 300u << 20);
}

TEST_F(Shape, shortening_a_cold_file_with_many_changes_lets_go_what_it_has_counted) {
  const Ino file = make_changed("/f");
  AttrChange change;
  change.size = 50 * kBlockSize;
  Operation operation(fixture_.fs().operations(), {});
  const auto shorten = [&] { return fixture_.fs().setattr(operation, file, change); };
  auto attr = shorten();
  for (; attr.fails_with(Errc::would_block); attr = shorten()) {
    EXPECT_LE(operation.wait().pins.size(), 10u);
    operation.block();
  }
  ASSERT_TRUE(attr.ok()) << attr.error().message();
  EXPECT_EQ(attr->blocks, 50u);
  EXPECT_EQ(attr->size, *change.size);
}

// However the file changes meanwhile: each attempt is as small as without that, and there is an end to them.
TEST_F(Shape, shortening_goes_on_where_it_was_while_others_change_the_file) {
  for (const bool clears : {false, true}) {
    const Ino file = make_changed(clears ? "/punched" : "/written");
    AttrChange change;
    change.size = 50 * kBlockSize;
    Operation operation(fixture_.fs().operations(), {});
    const auto shorten = [&] { return fixture_.fs().setattr(operation, file, change); };
    unsigned attempts = 1;
    std::uint64_t at = 60;
    auto attr = shorten();
    for (; attr.fails_with(Errc::would_block); attr = shorten(), ++attempts, ++at) {
      EXPECT_LE(operation.wait().pins.size(), 10u);
      operation.block();
      const auto punch = [&](Operation& op) {
        return fixture_.fs().fallocate(op, file, FallocateMode::punch_hole, at << kBlockShift, kBlockSize);
      };
      ASSERT_TRUE(clears ? fixture_.call(punch).ok() : fixture_.write(file, at << kBlockShift, Bytes(kBlockSize)).ok());
    }
    ASSERT_TRUE(attr.ok()) << attr.error().message();
    EXPECT_GT(attempts, 2u);
    EXPECT_LE(attempts, 200u);
    EXPECT_GE(attr->blocks, 50u) << "never too few";
    ASSERT_TRUE(fixture_.checkpoint().ok());
    EXPECT_EQ(fixture_.getattr(file)->blocks, 50u);
  }
}

TEST_F(Shape, allocating_in_a_cold_file_goes_on_where_it_was) {
  io::MemDevice device(512u << 20);
  ASSERT_TRUE(test::make_image(device, {}).ok());
  FsFixture fixture(device, test::test_options(clock_, random_));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = make_every_other(fixture, "/f");
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(fixture.mount().ok());
  tree::NodeCache& nodes = fixture.store().trees().cache();
  nodes.clear();
  const std::uint64_t leaves = kScattered / 250;  // at least
  const std::uint64_t gets = nodes.hits() + nodes.misses();
  Operation operation(fixture.fs().operations(), {});
  const auto allocate = [&] { return fixture.fs().fallocate(operation, file, FallocateMode::allocate, 0, kEveryOther); };
  unsigned attempts = 1;
  Status allocated = allocate();
  for (; allocated.fails_with(Errc::would_block); allocated = allocate()) {
    EXPECT_LE(operation.wait().pins.size(), 20u) << "nodes behind it are let go";
    ++attempts;
    operation.block();
  }
  ASSERT_TRUE(allocated.ok()) << allocated.error().message();
  EXPECT_EQ(fixture.getattr(file)->blocks, 2 * kScattered);
  EXPECT_EQ(fixture.getattr(file)->size, kEveryOther);
  EXPECT_LE(attempts, leaves) << "leaves are fetched many at a time";
  EXPECT_LE(nodes.hits() + nodes.misses() - gets, 60 * leaves);
}

TEST_F(Shape, allocating_lets_others_have_their_turn) {
  io::MemDevice device(512u << 20);
  ASSERT_TRUE(test::make_image(device, {}).ok());
  FsFixture fixture(device, test::test_options(clock_, random_));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = make_every_other(fixture, "/f");
  Operation operation(fixture.fs().operations(), {});
  const auto allocate = [&] { return fixture.fs().fallocate(operation, file, FallocateMode::allocate, 0, kEveryOther); };
  unsigned while_counting = 0, while_allocating = 0;
  Status allocated = allocate();
  for (; allocated.fails_with(Errc::would_block); allocated = allocate()) {
    const bool begun = fixture.getattr(file)->blocks > kScattered;
    if (!reads_anything(operation) && !operation.wait().for_settled) ++(begun ? while_allocating : while_counting);
    operation.block();
  }
  ASSERT_TRUE(allocated.ok()) << allocated.error().message();
  EXPECT_EQ(fixture.getattr(file)->blocks, 2 * kScattered);
  EXPECT_GE(while_counting, 4u);
  EXPECT_GE(while_allocating, 1u);
}

TEST_F(Shape, allocating_more_than_there_is_changes_nothing) {
  const Ino file = make_file("/f", Bytes(kBlockSize));
  const std::uint64_t size = 1u << 30, blocks = fixture_.getattr(file)->blocks;
  ASSERT_TRUE(fixture_.write(file, size / 2, Bytes(kBlockSize)).ok());
  const auto allocate = [&](Operation& op) {
    return fixture_.fs().fallocate(op, file, FallocateMode::allocate_keep_size, 0, size);
  };
  EXPECT_TRUE(fixture_.call(allocate).fails_with(Errc::no_space));
  EXPECT_EQ(fixture_.getattr(file)->blocks, blocks + 1);
}

// The file looks dense by its number of blocks, but some of them are behind its end.
TEST_F(Shape, what_is_set_aside_behind_the_end_does_not_stand_for_a_hole_before_it) {
  const Ino file = make_file("/f", Bytes(6 * kBlockSize));
  AttrChange change;
  change.size = 11 * kBlockSize;
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok());
  const auto zero = [&](Operation& op) {
    return fixture_.fs().fallocate(op, file, FallocateMode::zero_range_keep_size, 11 * kBlockSize, 5 * kBlockSize);
  };
  ASSERT_TRUE(fixture_.call(zero).ok());
  remount();
  ASSERT_TRUE(fixture_.write(file, 10 * kBlockSize, Bytes(1)).ok());
  EXPECT_EQ(fixture_.getattr(file)->blocks, 12u);
  ASSERT_TRUE(fixture_.write(file, 7 * kBlockSize, Bytes(1)).ok());
  EXPECT_EQ(fixture_.getattr(file)->blocks, 13u);
  ASSERT_TRUE(fixture_.write(file, 0, Bytes(1)).ok());
  EXPECT_EQ(fixture_.getattr(file)->blocks, 13u);
}

// The kernel has a longer file in its cache.
TEST_F(Shape, a_cut_to_more_than_there_is_gives_back_what_is_behind) {
  const Ino file = make_file("/f", Bytes(kBlockSize));
  const auto allocate = [&](Operation& op) {
    return fixture_.fs().fallocate(op, file, FallocateMode::allocate_keep_size, 0, 100 * kBlockSize);
  };
  ASSERT_TRUE(fixture_.call(allocate).ok());
  const auto has_room = [&](std::uint64_t size) {
    return *fixture_.call([&](Operation& op) { return fixture_.fs().has_room_behind(op, file, size); });
  };
  EXPECT_TRUE(has_room(50 * kBlockSize));
  EXPECT_FALSE(has_room(100 * kBlockSize));
  EXPECT_FALSE(has_room(kBlockSize)) << "it does not become longer";
  AttrChange change;
  change.size = 50 * kBlockSize - 7;
  const auto set = [&](Operation& op) { return fixture_.fs().setattr(op, file, change); };
  EXPECT_EQ(fixture_.call(set)->blocks, 100u) << "becoming longer keeps it";
  ASSERT_TRUE(fixture_.write(file, 60 * kBlockSize, Bytes(1)).ok());
  change.size = 80 * kBlockSize;
  change.is_cut = true;
  const Attr cut = *fixture_.call(set);
  EXPECT_EQ(cut.blocks, 80u);
  EXPECT_EQ(cut.size, 80 * kBlockSize);
}

TEST_F(Shape, punching_across_the_end_changes_nothing_before_it_has_all_it_needs) {
  const Bytes content(4096, std::byte{'x'});
  const Ino file = make_file("/f", content);
  remount();
  ASSERT_TRUE(fixture_.write(file, 0, content).ok());  // now this block is known without the trees, its neighbour is not
  store().trees().cache().clear();
  Operation operation(fixture_.fs().operations(), {});
  const auto punch = [&] { return fixture_.fs().fallocate(operation, file, FallocateMode::punch_hole, 100, 5000); };
  for (Status punched = punch(); !punched.ok(); punched = punch()) {
    ASSERT_TRUE(punched.fails_with(Errc::would_block)) << punched.error().message();
    EXPECT_EQ(*fixture_.read(file, 0, 4096), content) << "that is still to come";
    operation.block();
  }
  Bytes punched(content.begin(), content.begin() + 100);
  punched.resize(4096);
  EXPECT_EQ(*fixture_.read(file, 0, 5000), punched);
}

}  // namespace
}  // namespace varve::fs
