// A filesystem with automatic snapshots, and the model that knows what each of them has to show.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/protection.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {

using snapshots::ProtectionSettings;
using Mode = ProtectionSettings::Mode;
using Kind = snapshots::SnapshotChange::Kind;

inline constexpr ProtectionSettings kOneMinute{Mode::on, 60, 10};

inline WorldParameters protected_world(ProtectionSettings settings = kOneMinute, std::uint64_t bytes = 48u << 20) {
  WorldParameters parameters;
  parameters.bytes = bytes;
  parameters.options = [settings](fs::Options& options) { options.protection = settings; };
  return parameters;
}

struct ProtectedWorld : World {
  explicit ProtectedWorld(const WorldParameters& wanted = protected_world()) : World(wanted) {
    EXPECT_TRUE(good(start()));
  }
  void run(const std::string& text) { ASSERT_TRUE(good(run_script(steps, script(text)))) << text; }
  std::vector<std::string> automatic() {
    std::vector<std::string> names;
    for (const fs::SnapshotFacts& item : fixture.fs().snapshots().snapshots)
      if (item.automatic) names.push_back(item.name);
    return names;
  }
  const tree::TreeView& trees() { return fixture.store().trees().own_view(); }
  std::string look() {
    std::string failure = compare_now();
    return failure.empty() ? finish() : failure;
  }
  void remount(ProtectionSettings settings) {
    ASSERT_TRUE(fixture.unmount().ok());
    fixture.options().protection = settings;
    ASSERT_TRUE(fixture.mount().ok());
  }
};

}  // namespace varve::test
