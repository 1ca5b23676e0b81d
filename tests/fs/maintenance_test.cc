// When background work is done because somebody asks for it, and when not.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fs/engine.h"
#include "fs/maintenance.h"
#include "store/checkpoints.h"
#include "store/counters.h"
#include "store/store.h"
#include "store/waiters.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class MaintenanceTest : public test::MountedTest {
 protected:
  void SetUp() override {
    MountedTest::SetUp();
    ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  }
  Maintenance& maintenance() { return fixture_.fs().engine().maintenance(); }
  // Like an operation that is refused.
  void wait_for_room() {
    waits_ = true;
    fixture_.store().waiters().add([this] { waits_ = false; });
    maintenance().request_checkpoint(true);
    EXPECT_TRUE(maintenance().room_is_waited_for());
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

// Where each checkpoint is waited for by something, a job would never come to anything.
TEST_F(MaintenanceTest, a_job_moves_something_before_it_gives_way_to_a_checkpoint) {
  const auto gives_way = maintenance().giving_way();
  EXPECT_FALSE(gives_way());
  maintenance().request_checkpoint();
  EXPECT_FALSE(gives_way());
  ++fixture_.store().counters().cleaned_blocks;
  EXPECT_TRUE(gives_way());
  wait_for_room();
  EXPECT_TRUE(maintenance().giving_way()());
  fixture_.store().waiters().wake();
}

// A round and its checkpoint have let in what waited for room. That is no reason for another one.
TEST_F(MaintenanceTest, nothing_is_done_for_those_that_wait_for_room_no_more) {
  wait_for_room();
  fixture_.store().waiters().wake();
  EXPECT_FALSE(waits_);
  EXPECT_FALSE(maintenance().room_is_waited_for());
  expect_checkpoint(false);
}

TEST_F(MaintenanceTest, a_checkpoint_is_made_for_those_that_wait_for_room) {
  wait_for_room();
  expect_checkpoint(true);
  EXPECT_FALSE(waits_);
}

TEST_F(MaintenanceTest, what_its_own_thread_has_noted_is_done) {
  maintenance().note_space_wanted();
  EXPECT_TRUE(maintenance().room_is_waited_for());
  expect_checkpoint(true);
  EXPECT_FALSE(maintenance().room_is_waited_for());
}

}  // namespace
}  // namespace varve::fs
