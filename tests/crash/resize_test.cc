// Power fails while a filesystem grows or shrinks: it has one size or the other, and everything that was synced.
#include <gtest/gtest.h>

#include <set>

#include "check/check.h"
#include "support/good.h"
#include "sweep.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

class ResizeCrash : public testing::TestWithParam<bool> {
 protected:
  static CrashSetup setup() {
    CrashSetup setup;
    setup.bytes = 16 * kMiB;
    setup.superblocks_in_place = GetParam();
    return setup;
  }
};
INSTANTIATE_TEST_SUITE_P(Superblocks, ResizeCrash, testing::Bool(),
                         [](const auto& is) { return is.param ? "in_place" : "in_an_area"; });

const char* const kFiles =
    "create /a 0644; write /a 0 900000 1; create /b 0644; write /b 0 700000 2; create /c 0644; write /c 0 800000 3; "
    "sync; unlink /b; sync";

TEST_P(ResizeCrash, H51_while_it_shrinks) {
  EXPECT_TRUE(good(sweep_all(setup(), kFiles,
                             "append /a 5000 4; fsync /a; resize 12582912; append /c 6000 5; fsync /c; mkdir /d 0755; sync",
                             exhaustive())));
}

TEST_P(ResizeCrash, H51_while_it_grows) {
  EXPECT_TRUE(good(sweep_all(setup(), std::string(kFiles) + "; resize 11534336",
                             "append /a 5000 4; fsync /a; resize 16777216; append /c 60000 5; fsync /c; mkdir /d 0755; sync",
                             exhaustive())));
}

TEST_P(ResizeCrash, H51_there_and_back_with_a_log_behind_it) {
  EXPECT_TRUE(good(sweep_all(setup(), kFiles,
                             "append /c 3000 6; resize 11534336; append /a 5000 4; fsync /a; resize 15728640; unlink /c; fsync /a; "
                             "resize 12582912; append /a 70000 7; sync", exhaustive())));
}

// No size in between, wherever it is cut, and the one that it had as long as nothing newer was there.
TEST_P(ResizeCrash, H51_leaves_the_former_size_or_the_new_one) {
  const DurableState start = prepare(setup(), script(kFiles));
  Recording recording(setup(), start, script("resize 12582912; sync; resize 15728640; sync"));
  ASSERT_EQ(recording.failed(), "");
  std::set<std::uint64_t> sizes;
  for (const Cut& cut : recording.cuts({})) {
    const auto image = recording.device().image(cut);
    ManualClock clock;
    SeededRandom random(1);
    FsFixture fixture(*image, options_for(setup(), clock, random));
    ASSERT_TRUE(fixture.mount().ok()) << to_string(cut);
    const std::uint64_t blocks = fixture.fs().status().device_blocks;
    ASSERT_TRUE(blocks == 16 * kMiB / kBlockSize || blocks == 12 * kMiB / kBlockSize || blocks == 15 * kMiB / kBlockSize) << to_string(cut);
    sizes.insert(blocks);
    ASSERT_TRUE(fixture.unmount().ok());
    const auto report = check::check(*image, {});
    ASSERT_TRUE(report.ok());
    ASSERT_TRUE(report->problems.kept().empty()) << to_string(cut) << ": " << check::to_line(report->problems.kept().front());
  }
  EXPECT_EQ(sizes.size(), 3U);
}

}  // namespace
}  // namespace varve::test
