// How long a write waits for room on modelled devices, and what it makes them write; by their own clock: the same on any machine.
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

// Each round of cleaning has a checkpoint, which writes most tree nodes again. What goes into holes needs no room to be cleaned ahead.
TEST(Overwrites, IntoHolesWriteFewNodes) {
  const auto parts = overwrite("emmc", 0.85, 0.4);
  ASSERT_EQ(parts.size(), 2U);
  for (const EnginePart& part : parts) {
    EXPECT_GT(part.in_holes, part.operations / 2) << part.name;
    EXPECT_LT(static_cast<double>(part.nodes), 0.4 * static_cast<double>(part.operations)) << part.name;
  }
}

}  // namespace
}  // namespace varve::bench::test
