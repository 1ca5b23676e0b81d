// Mounts of images that a crash has left, and what a superblock says only while there is one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "image_tools.h"
#include "support/good.h"
#include "support/world.h"

namespace varve::test {

struct Mounted {
  explicit Mounted(io::BlockDevice& device, const std::function<void(fs::Options&)>& change = {})
      : fixture(device, options(change)), status(fixture.mount()) {}

  fs::Options options(const std::function<void(fs::Options&)>& change) {
    clock.set_elapsed(9'000'000'000'000);
    fs::Options result = test_options(clock, random);
    if (change) change(result);
    return result;
  }

  ManualClock clock;
  SeededRandom random{4711};
  FsFixture fixture;
  Status status;
};

inline std::uint64_t sign_in(const io::MemDevice& device, std::uint64_t sign) { return superblock_of(device).features.incompat & sign; }

// An incompatible feature of the log is there from the first chunk of a mount on, until a mount ends cleanly.
// `look`: at the chunks that the steps have left.
inline void expect_sign_until_unmount(World& world, std::uint64_t sign, const std::string& steps,
                                      const std::function<void(const std::vector<FoundChunk>&)>& look) {
  ASSERT_TRUE(good(world.start()));
  EXPECT_EQ(sign_in(world.device, sign), 0U);
  ASSERT_TRUE(good(run_script(world.steps, script(steps))));
  EXPECT_EQ(sign_in(world.device, sign), sign);
  world.fixture.crash();
  look(chain_of(world.device));
  const auto report = check::check(world.device, {.verify_data = true});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(report->needs_recovery);
  for (const check::Problem& problem : report->problems.kept())
    EXPECT_TRUE(problem.code == check::Code::needs_recovery) << check::to_line(problem);
  ASSERT_TRUE(world.fixture.mount().ok());
  EXPECT_EQ(sign_in(world.device, sign), sign) << "of the mount that has recovered";
  ASSERT_TRUE(good(world.compare_now()));
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_EQ(sign_in(world.device, sign), 0U);
  EXPECT_EQ(check_image(world.device), "");
}

}  // namespace varve::test
