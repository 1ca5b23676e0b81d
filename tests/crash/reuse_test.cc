// Operations that waited while what they had read was freed and used for something else (H30): no thread is needed for
// that, an operation is simply not gone on with for a while.
#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "device/faults.h"
#include "format/item.h"
#include "fs/engine.h"
#include "image_tools.h"
#include "operation/wait.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

class Reuse : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(good(world.start()));
    ASSERT_TRUE(world.fixture.make("/f", 0100644).ok());
    file = *world.fixture.resolve("/f");
    ASSERT_TRUE(world.fixture.make("/other", 0100644).ok());
    other = *world.fixture.resolve("/other");
    write(1);
    ASSERT_TRUE(world.fixture.unmount().ok());
    ASSERT_TRUE(world.fixture.mount().ok());  // nothing is cached
    operation = std::make_unique<fs::Operation>(fs().operations(), fs::Caller{});
  }
  void TearDown() override { operation.reset(); }

  fs::Filesystem& fs() { return world.fixture.fs(); }
  store::Store& store() { return fs().engine().store(); }
  void write(std::uint64_t seed) {
    ASSERT_TRUE(world.fixture.write(file, 0, pattern_bytes(seed, 0, kBlockSize)).ok());
    // Something of another size in between, so that addresses do not come around in step.
    const std::size_t more = seed * 2654435761 / 128 % 97 * kBlockSize + 1;
    ASSERT_TRUE(world.fixture.write(other, 0, pattern_bytes(seed + 1'000'000, 0, more)).ok());
    ASSERT_TRUE(world.fixture.checkpoint().ok());
  }
  BlockAddr address_of_file() {
    tree::BlockingSource source = store().trees().source();
    const auto item = *tree::find_item(source, store().trees().own_view().inode_file, {file, format::ItemKind::extent, 0});
    return format::decode_extent(item->value)->address;
  }
  // How the read ends if a checkpoint comes after each of its steps; would_block: not in fifty of them.
  Result<std::size_t> read_between_checkpoints() {
    Result<std::size_t> got = Errc::would_block;
    for (unsigned step = 0; got.fails_with(Errc::would_block) && step < 50; ++step) {
      operation->block();
      EXPECT_TRUE(world.fixture.write(other, 0, pattern_bytes(step, 0, kBlockSize)).ok());
      EXPECT_TRUE(world.fixture.checkpoint().ok());
      got = read();
    }
    return got;
  }
  Result<std::size_t> read() { return fs().read(*operation, file, 0, buffer.span()); }
  void expect_pattern(const Result<std::size_t>& got, std::uint64_t seed) {
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(std::vector<std::byte>(buffer.data(), buffer.data() + kBlockSize), pattern_bytes(seed, 0, kBlockSize));
  }

  World world{WorldParameters{.bytes = 8u << 20, .image = {}, .lockstep = {}, .options = {}}};
  Ino file, other;
  AlignedBuffer buffer{kBlockSize};
  std::unique_ptr<fs::Operation> operation;
};

// The data block that the operation is about to read has become another file's.
TEST_F(Reuse, H30_a_block_that_was_looked_up_before_it_was_used_again) {
  while (read().fails_with(Errc::would_block) && operation->wait().reads.empty()) operation->block();
  ASSERT_EQ(operation->wait().reads.size(), 1U);
  ASSERT_FALSE(operation->wait().reads.front().started);
  const BlockAddr looked_up = operation->wait().reads.front().address;
  std::array<std::byte, kBlockSize> before, now;
  world.device.peek(looked_up.v * kBlockSize, before);
  std::uint64_t seed = 2;
  for (now = before; now == before; ++seed) {
    ASSERT_LT(seed, 20000U) << "the block is never used again";
    write(seed);
    world.device.peek(looked_up.v * kBlockSize, now);
  }
  expect_pattern(fs::block_on(*operation, [&] { return read(); }), seed - 1);
}

// It has been read, and stands now for newer content of the same block.
TEST_F(Reuse, H30_a_block_that_was_read_before_it_was_used_again) {
  while (read().fails_with(Errc::would_block) && operation->wait().reads.empty()) operation->block();
  ASSERT_EQ(operation->wait().reads.size(), 1U);
  operation->block();  // reads it
  ASSERT_TRUE(operation->wait().reads.front().done);
  const BlockAddr was = operation->wait().reads.front().address;
  std::uint64_t seed = 2;
  do {
    ASSERT_LT(seed, 100000U) << "the block never comes back to its place";
    write(seed++);
  } while (address_of_file() != was);
  expect_pattern(fs::block_on(*operation, [&] { return read(); }), seed - 1);
}

// While one checkpoint follows the other, what has been read stays what it is. It was thrown away, for as long as that went on.
TEST_F(Reuse, what_has_been_read_counts_however_many_checkpoints_come_meanwhile) {
  while (read().fails_with(Errc::would_block) && operation->wait().reads.empty()) operation->block();
  ASSERT_EQ(operation->wait().reads.size(), 1U);
  expect_pattern(read_between_checkpoints(), 1);
}

// Nor is what can never be read tried again and again.
TEST_F(Reuse, what_is_damaged_is_told_however_many_checkpoints_come_meanwhile) {
  while (read().fails_with(Errc::would_block) && operation->wait().reads.empty()) operation->block();
  ASSERT_EQ(operation->wait().reads.size(), 1U);
  flip_bit(world.device, operation->wait().reads.front().address, 777);
  const auto got = read_between_checkpoints();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().to_errno(), EIO);
}

// A tree node was read, and another one stands in its place.
TEST_F(Reuse, H30_a_node_whose_place_was_used_again) {
  store().trees().cache().clear();  // the mount has looked for orphans
  ASSERT_TRUE(read().fails_with(Errc::would_block));
  operation->block();
  ASSERT_FALSE(operation->wait().pins.empty());
  const format::NodeRef ref = store().trees().own_view().inode_file.ref;
  const BlockAddr root = ref.address;
  ASSERT_TRUE(operation->wait().pins.contains(operation::NodeName(ref)));
  std::uint64_t seed = 2;
  do {
    ASSERT_LT(seed, 100000U) << "the root never comes back to its place";
    write(seed++);
  } while (store().trees().own_view().inode_file.ref.address != root);
  expect_pattern(fs::block_on(*operation, [&] { return read(); }), seed - 1);
}

// Another one stands there already when it is read: that is no damage, of which the status would tell for ever.
TEST_F(Reuse, H30_a_node_whose_place_is_used_again_before_it_is_read) {
  store().trees().cache().clear();
  ASSERT_TRUE(read().fails_with(Errc::would_block));
  const format::NodeRef ref = store().trees().own_view().inode_file.ref;
  const BlockAddr root = ref.address;
  ASSERT_EQ(operation->wait().nodes.size(), 1U);
  ASSERT_EQ(operation->wait().nodes.front().ref.address, root);
  const auto before = block_at(world.device, root);
  std::uint64_t seed = 2;
  do {
    ASSERT_LT(seed, 20000U) << "the root's place is never used again";
    write(seed++);
  } while (block_at(world.device, root) == before);
  store().trees().cache().clear();  // a checkpoint has read it while it still stood there
  operation->block();
  ASSERT_TRUE(operation->wait().failed_nodes.contains(operation::NodeName(ref)));
  expect_pattern(fs::block_on(*operation, [&] { return read(); }), seed - 1);
  EXPECT_EQ(store().checkpoints().lifetime().errors, 0U);
}

// But one that is wanted still and cannot be had is, once for each operation.
TEST_F(Reuse, H30_a_node_that_is_damaged_is_noted) {
  store().trees().cache().clear();
  const BlockAddr root = store().trees().own_view().inode_file.ref.address;
  flip_bit(world.device, root, 12345);
  EXPECT_FALSE(fs::block_on(*operation, [&] { return read(); }).ok());
  EXPECT_FALSE(fs::block_on(*operation, [&] { return read(); }).ok());
  EXPECT_EQ(store().checkpoints().lifetime().errors, 1U);
  EXPECT_EQ(store().faults().first_and_last().second.address, root);
}

}  // namespace
}  // namespace varve::test
