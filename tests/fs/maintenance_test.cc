// When background work is done because somebody asks for it, and when not.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fs/engine.h"
#include "store/store.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class MaintenanceTest : public test::MountedTest {
 protected:
  Serial settled() { return fixture_.store().checkpoints().settled(); }
  Maintenance& maintenance() { return fixture_.fs().engine().maintenance(); }
};

TEST_F(MaintenanceTest, a_checkpoint_is_made_for_those_that_ask_for_it) {
  ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  const Serial before = settled();
  maintenance().request_checkpoint();
  EXPECT_TRUE(maintenance().work(false));
  EXPECT_NE(settled(), before);
}

// A round and its checkpoint have let in what waited for room. That is no reason for another one.
TEST_F(MaintenanceTest, nothing_is_done_for_those_that_wait_for_room_no_more) {
  ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  const Serial before = settled();
  bool waits = true;
  fixture_.store().waiters().add([&] { waits = false; });
  maintenance().request_checkpoint(true);
  EXPECT_TRUE(maintenance().room_is_waited_for());
  fixture_.store().waiters().wake();
  EXPECT_FALSE(waits);
  EXPECT_FALSE(maintenance().room_is_waited_for());
  EXPECT_FALSE(maintenance().work(false));
  EXPECT_EQ(settled(), before);
}

TEST_F(MaintenanceTest, a_checkpoint_is_made_for_those_that_wait_for_room) {
  ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  const Serial before = settled();
  bool waits = true;
  fixture_.store().waiters().add([&] { waits = false; });
  maintenance().request_checkpoint(true);
  EXPECT_TRUE(maintenance().work(false));
  EXPECT_NE(settled(), before);
  EXPECT_FALSE(waits);
}

TEST_F(MaintenanceTest, what_its_own_thread_has_noted_is_done) {
  ASSERT_TRUE(fixture_.make("/a", S_IFREG | 0644).ok());
  const Serial before = settled();
  maintenance().note_space_wanted();
  EXPECT_TRUE(maintenance().room_is_waited_for());
  EXPECT_TRUE(maintenance().work(false));
  EXPECT_NE(settled(), before);
  EXPECT_FALSE(maintenance().room_is_waited_for());
}

}  // namespace
}  // namespace varve::fs
