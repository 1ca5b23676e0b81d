// When background work is done because somebody asks for it, and when not.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/wait_list.h"
#include "changes/staging.h"
#include "changes/unsealed.h"
#include "checkpoint/checkpoints.h"
#include "fs/engine.h"
#include "jobs/jobs.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/mounted_test.h"

namespace varve::jobs {
namespace {

class MaintenanceTest : public test::MountedTest {
 protected:
  void SetUp() override {
    MountedTest::SetUp();
    ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  }
  Requests& requests() { return fixture_.fs().engine().jobs().requests(); }
  Job::Interrupt giving_way() { return fixture_.fs().engine().jobs().scheduler().interrupt(Kind::cleaning); }
  Maintenance& maintenance() { return fixture_.fs().engine().jobs().maintenance(); }
  // Like an operation that is refused.
  void wait_for_room() {
    waits_ = true;
    fixture_.store().waiters().add([this] { waits_ = false; });
    maintenance().request_checkpoint(true);
    EXPECT_TRUE(requests().room_is_waited_for());
  }
  void expect_checkpoint(bool made) {
    const Serial before = fixture_.store().checkpoints().settled();
    EXPECT_EQ(maintenance().work(false), made);
    EXPECT_EQ(fixture_.store().checkpoints().settled() != before, made);
  }

  bool waits_ = false;
};

TEST_F(MaintenanceTest, a_checkpoint_is_made_for_those_that_ask_for_it) {
  maintenance().request_checkpoint();
  expect_checkpoint(true);
}

// The files are changes until a checkpoint, and their nodes are in the cache after it.
TEST_F(MaintenanceTest, a_smaller_bound_of_memory_is_followed_by_changes_and_caches) {
  constexpr std::size_t kBound = 2u << 20;
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(fixture_.make("/a name that is not short " + std::to_string(i), S_IFREG | 0644).ok());
  expect_checkpoint(false);
  fixture_.fs().bound_memory(kBound, 8 * kBound);
  EXPECT_EQ(fixture_.fs().status().memory_limit_bytes, 8 * kBound);
  expect_checkpoint(true);
  fixture_.fs().bound_memory(32u << 20, 64u << 20);
  EXPECT_EQ(fixture_.list(kRootIno).value().size(), 3003U);
  EXPECT_GT(fixture_.fs().status().node_cache_bytes, kBound / 5);
  fixture_.fs().bound_memory(kBound, 8 * kBound);
  EXPECT_LE(fixture_.fs().status().node_cache_bytes, kBound / 5);
  EXPECT_LE(fixture_.fs().status().inodes_cached, 1000U);
  EXPECT_EQ(fixture_.list(kRootIno).value().size(), 3003U);
}

// Payload that nobody syncs may wait for minutes (commit=), and no operation comes that would look at the bound.
TEST_F(MaintenanceTest, a_smaller_bound_of_memory_is_followed_by_payload_that_waits) {
  clock_.advance(60'000'000'000);  // nobody has synced for long
  const std::vector<std::byte> data(1u << 20, std::byte{7});
  for (const char* name : {"/b", "/c", "/d"}) ASSERT_TRUE(fixture_.write(fixture_.make(name, S_IFREG | 0644).value().ino, 0, data).ok());
  const changes::Unsealed& unsealed = fixture_.store().staging().unsealed();
  ASSERT_GE(unsealed.held_bytes(), 3 * data.size());
  expect_checkpoint(false);
  EXPECT_GE(unsealed.held_bytes(), 3 * data.size()) << "there is room for it";
  fixture_.fs().bound_memory(6u << 20, 64u << 20);
  expect_checkpoint(false);
  EXPECT_EQ(unsealed.held_bytes(), 0U);
}

// If something waits for each checkpoint, a job would never come to anything.
TEST_F(MaintenanceTest, a_job_moves_something_before_it_gives_way_to_a_checkpoint) {
  const auto gives_way = giving_way();
  EXPECT_FALSE(gives_way());
  maintenance().request_checkpoint();
  EXPECT_FALSE(gives_way());
  ++fixture_.store().counters().cleaned_blocks;
  EXPECT_TRUE(gives_way());
  wait_for_room();
  EXPECT_TRUE(giving_way()());
  fixture_.store().waiters().wake();
}

// A round and its checkpoint have let in what waited for room. That is no reason for another one.
TEST_F(MaintenanceTest, nothing_is_done_for_those_that_wait_for_room_no_more) {
  wait_for_room();
  fixture_.store().waiters().wake();
  EXPECT_FALSE(waits_);
  EXPECT_FALSE(requests().room_is_waited_for());
  expect_checkpoint(false);
}

TEST_F(MaintenanceTest, a_checkpoint_is_made_for_those_that_wait_for_room) {
  wait_for_room();
  expect_checkpoint(true);
  EXPECT_FALSE(waits_);
}

TEST_F(MaintenanceTest, what_its_own_thread_has_noted_is_done) {
  requests().note_space_wanted();
  EXPECT_TRUE(requests().room_is_waited_for());
  expect_checkpoint(true);
  EXPECT_FALSE(requests().room_is_waited_for());
}

// Space is low, and there is much to clean.
class AgedMount : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {.segment_blocks = 64}).ok());
    fixture_.options().cleaner = false;
    ASSERT_TRUE(fixture_.mount().ok());
    const auto made = fixture_.make("/file", S_IFREG | 0644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    const auto room = fixture_.available_bytes();
    ASSERT_TRUE(room.ok());
    blocks_ = *room / kBlockSize * 9 / 10;
    for (std::uint64_t block = 0; block < blocks_; ++block) ASSERT_TRUE(overwrite(block).ok());
    for (std::uint64_t block = 0; overwrite(block).ok(); block = (block + 1613) % blocks_) {
    }
    ASSERT_TRUE(fixture_.unmount().ok());
    fixture_.options().cleaner = true;
    ASSERT_TRUE(fixture_.mount().ok());
  }
  Status overwrite(std::uint64_t block) { return fixture_.write(file_, block * kBlockSize, block_); }
  std::uint64_t blocks_read() { return fixture_.store().counters().cleaned_blocks_read; }

  io::MemDevice device_{64u << 20};
  test::ManualClock clock_;
  SeededRandom random_{7};
  test::FsFixture fixture_{device_, test::test_options(clock_, random_)};
  const std::vector<std::byte> block_ = std::vector<std::byte>(kBlockSize, std::byte{2});
  Ino file_;
  std::uint64_t blocks_ = 0;
};

// A program that only reads would wait behind it, and nobody needs the room yet.
TEST_F(AgedMount, cleaning_begins_when_somebody_writes) {
  Maintenance& maintenance = fixture_.fs().engine().jobs().maintenance();
  ASSERT_TRUE(fixture_.read(file_, 0, kBlockSize).ok());
  EXPECT_FALSE(maintenance.work(false));
  EXPECT_EQ(blocks_read(), 0U);
  ASSERT_TRUE(overwrite(1).ok());
  (void)maintenance.work(false);
  EXPECT_GT(blocks_read(), 0U);
}

}  // namespace
}  // namespace varve::jobs
