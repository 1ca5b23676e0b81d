// Content that stands in the log and in the tree, cut off at every moment.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/good.h"
#include "sweep.h"

namespace varve::test {
namespace {

CrashSetup with_tails() {
  CrashSetup setup;
  setup.tails = 700;
  return setup;
}

std::string lines(unsigned count, unsigned bytes) {
  std::string steps;
  for (unsigned i = 0; i < count; ++i) steps += fmt::format("append /log {} {}; {}; ", bytes, i + 1, i % 3 == 2 ? "seal" : "fsync /log");
  return steps;
}

TEST(Hazards, H61_synced_lines_are_there_up_to_any_cut) {
  CrashSetup setup = with_tails();
  for (const std::uint64_t order : {0, 5}) {
    setup.completion_seed = order;
    EXPECT_TRUE(good(sweep_all(setup, "create /log 0644", lines(24, 390) + "checkpoint; " + lines(10, 390), exhaustive())));
  }
}

// Each in a file of its own, of which the tail is in the log, in the trees, or both.
TEST(Hazards, H61_a_tail_that_is_not_the_end_any_more_is_a_block) {
  const std::string made = "create /a 0644; append /a 300 1; create /b 0644; append /b 2000 2; create /c 0644; append /c 600 3; ";
  const std::string longer = "write /a 20480 100 4; fsync /a; truncate /b 9000; fsync /b; fallocate /c keep 0 16384; fsync /c; ";
  const std::string shorter = "truncate /a 200; truncate /b 4096; fsync /b; append /b 100 5; write /c 100 100 6; fsync /c; ";
  for (const char* between : {"seal; ", "sync; ", "checkpoint; "})
    EXPECT_TRUE(good(sweep_all(with_tails(), "create /d 0644", made + between + longer + between + shorter + "checkpoint", exhaustive())))
        << between;
}

TEST(Hazards, H61_a_tail_goes_with_its_file_and_comes_with_another) {
  const std::string steps = "create /a 0644; append /a 300 1; create /b 0644; append /b 500 2; sync; rename /a /b move; fsync /b; "
                            "unlink /b; create /b 0644; append /b 650 3; fsync /b; checkpoint; "
                            "truncate /b 0; append /b 100 4; fsync /b; seal";
  EXPECT_TRUE(good(sweep_all(with_tails(), "create /d 0644", steps, exhaustive())));
}

}  // namespace
}  // namespace varve::test
