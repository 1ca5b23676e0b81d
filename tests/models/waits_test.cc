// How long a write waits for room on modelled devices, by their own clock: the same on any machine.
#include <gtest/gtest.h>

#include "engine_run.h"

namespace varve::bench::test {
namespace {

// 4 KiB here and there, once the device is so full; two parts.
std::vector<EnginePart> overwrite(const char* model, double full, double turns) {
  EngineSetup setup;
  setup.model = model;
  setup.size = 512u << 20;
  setup.full = full;
  setup.turns = turns;
  return run_on_model(setup, {});
}

// Its cache takes what is written into holes on trial at once, and carries it out when the checkpoint flushes.
TEST(Waits, ATrialOfHolesIsShortOnADiskWithACache) {
  const auto parts = overwrite("hdd-laptop", 0.85, 0.3);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_LT(parts[0].longest_wait, 5);
  EXPECT_LT(parts[1].longest_wait, 5);
  EXPECT_LT(parts[0].seconds / static_cast<double>(parts[0].operations), 0.004);
}

}  // namespace
}  // namespace varve::bench::test
