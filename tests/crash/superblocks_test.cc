// The scenarios of the design review in which superblocks are lost, torn, or of another program: a state that was promised, or no mount.
#include <gtest/gtest.h>

#include "image_tools.h"
#include "mounts.h"
#include "support/comparer.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"
#include "unclean.h"

namespace varve::test {
namespace {

TEST(Hazards, H26_one_superblock_lost_at_rest_loses_nothing) {
  const DurableState clean = prepare({}, script("create /f 0644; write /f 0 100000 1; checkpoint; unlink /f;"
                                                "create /g 0644; write /g 0 50000 2; checkpoint; create /h 0644"));
  Unclean crash(std::string(kSyncedSteps) + "; checkpoint; create /z 0644; fsync /z");
  for (const bool first : {true, false}) {
    for (const bool unclean : {true, false}) {
      const auto image = unclean ? crash.image->snapshot() : clean.image->snapshot();
      wipe(*image, superblock_places(*image)[first ? 0 : 1]);
      Mounted mounted(*image);
      ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
      EXPECT_TRUE(good(compare(mounted.fixture, unclean ? crash.last() : clean.model))) << first << unclean;
      ASSERT_TRUE(mounted.fixture.unmount().ok());
      EXPECT_TRUE(good(check_image(*image))) << "both superblocks must be whole again";
    }
  }
}

// A crash between the two superblocks, and then one of them rots: a state that was promised, or no mount.
TEST(Hazards, H27_a_superblock_lost_between_the_writes_is_noticed) {
  Recording recording({}, prepare({}, script("create /f 0644")),
                      script("write /f 0 50000 1; fsync /f; checkpoint; write /f 0 4096 2; fsync /f; unlink /f;"
                             "fsync /; checkpoint; create /g 0644; fsync /g; checkpoint"));
  ASSERT_TRUE(good(recording.failed()));
  for (const Cut& cut : recording.cuts(CutPlan{.seeds = 1})) {
    for (const bool first : {true, false}) {
      const auto image = recording.device().image(cut);
      flip_bit(*image, superblock_places(*image)[first ? 0 : 1], 4001);
      Mounted mounted(*image);
      if (!mounted.status.ok()) {
        EXPECT_NE(mounted.status.error().message().find("fsck"), std::string::npos);
        continue;
      }
      std::size_t state = 0;
      EXPECT_TRUE(good(recording.find(snapshot_of(mounted.fixture), recording.allowed(cut), state))) << to_string(cut);
    }
  }
}

// What stands before them was good once. It must not come back: what it names may have been written over since.
TEST(Hazards, H26_an_older_superblock_does_not_take_the_place_of_two_lost_ones) {
  Unclean crash(std::string(kSyncedSteps) + "; checkpoint; create /z 0644; fsync /z; checkpoint");
  for (const bool zeros : {true, false}) {
    const auto image = crash.image->snapshot();
    for (const BlockAddr place : superblock_places(*crash.image)) {
      if (zeros) wipe(*image, place);
      else flip_bit(*image, place, 4001);
    }
    Mounted mounted(*image);
    ASSERT_TRUE(mounted.status.fails_with(Errc::needs_fsck)) << "an older state was mounted";
    EXPECT_NE(mounted.status.error().message().find("superblock"), std::string::npos) << mounted.status.error().message();
  }
}

// An anchor says where the area is; either of them is enough, and the next mount for writing makes the other one good.
TEST(Hazards, H26_one_anchor_lost_loses_nothing) {
  Unclean crash(std::string(kSyncedSteps) + "; checkpoint; create /z 0644; fsync /z");
  for (const BlockAddr anchor : {BlockAddr{0}, BlockAddr{crash.image->geometry().blocks() - 1}}) {
    const auto image = crash.image->snapshot();
    wipe(*image, anchor);
    Mounted mounted(*image);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(good(compare(mounted.fixture, crash.last())));
    ASSERT_TRUE(mounted.fixture.unmount().ok());
    EXPECT_TRUE(good(check_image(*image)));
  }
}

// Another program's superblock stands where the next one goes: it knew nothing of leases, and nothing is written over it.
TEST(Hazards, H26_a_newer_superblock_is_not_overwritten) {
  World world(WorldParameters{});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 50000 1; checkpoint"))));
  format::Superblock others = superblock_of(world.device);
  ++others.sequence;
  ++others.serial;
  std::vector<std::byte> block(kBlockSize);
  format::encode_superblock(others, block);
  const BlockAddr place = others.area.place_of(others.sequence);
  world.device.poke(place.v * kBlockSize, block);
  ASSERT_TRUE(world.fixture.make("/g", 0100644).ok());
  EXPECT_FALSE(world.fixture.checkpoint().ok());
  EXPECT_EQ(block_at(world.device, place), block);
  EXPECT_TRUE(world.fixture.make("/h", 0100644).fails_with(Errc::read_only));
}

// The device never wrote the second superblock, the log went on, and then the first one rots: what the older one leads
// to has been free for use since.
TEST(Hazards, H27_a_superblock_that_was_never_written_is_missed) {
  World world(WorldParameters{});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 50000 1; checkpoint; fsync /f"))));
  const auto before = world.device.snapshot();
  ASSERT_TRUE(good(run_script(world.steps, script("create /g 0644; fsync /g; checkpoint; create /h 0644; fsync /h"))));
  world.fixture.crash();
  const auto places = superblock_places(world.device);
  world.device.poke(places[1].v * kBlockSize, block_at(*before, places[1]));
  {
    const auto copy = world.device.snapshot();
    Mounted mounted(*copy);
    EXPECT_TRUE(mounted.status.ok()) << "the first one knows";
  }
  wipe(world.device, places[0]);
  Mounted mounted(world.device);
  ASSERT_TRUE(mounted.status.fails_with(Errc::needs_fsck));
  EXPECT_NE(mounted.status.error().message().find("superblock"), std::string::npos) << mounted.status.error().message();
}

TEST(Hazards, H46_without_any_superblock_the_mount_says_so) {
  Unclean crash(kSyncedSteps);
  for (const bool wiped : {false, true}) {
    const auto image = crash.image->snapshot();
    for (const BlockAddr copy : {BlockAddr{0}, BlockAddr{image->geometry().blocks() - 1}})
      wiped ? wipe(*image, copy) : flip_bit(*image, copy, 999);
    Mounted mounted(*image);
    ASSERT_TRUE(mounted.status.fails_with(wiped ? Errc::not_varve : Errc::needs_fsck));
    EXPECT_NE(mounted.status.error().message().find("fsck.varve"), std::string::npos) << mounted.status.error().message();
  }
}

}  // namespace
}  // namespace varve::test
