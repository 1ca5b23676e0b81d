// A repair that is cut off at any write can be done again, and ends in the same state.
#include <gtest/gtest.h>

#include "check/checking.h"
#include "fsck/recovery.h"
#include "repair/damage_cases.h"
#include "repair/populated.h"
#include "support/crash_device.h"
#include "support/settings.h"

namespace varve::repair::test {
namespace {

using varve::test::CrashDevice;
using varve::test::Cut;
using varve::test::CutPlan;

// What a user sees after a repair; sets what cannot be compared aside.
std::string same(const Seen& expected, const Seen& found) {
  if (found.error != expected.error) return fmt::format("'{}' instead of '{}'", found.error, expected.error);
  if (expected.paths != found.paths) return fmt::format("{} names instead of {}", found.paths.size(), expected.paths.size());
  for (const auto& [ino, file] : expected.inodes) {
    if (file != found.inodes.at(ino)) return fmt::format("inode {} differs", ino);
  }
  return "";
}

// What is in use, and what each snapshot shows.
std::map<std::string, Seen> look_at_all(io::MemDevice& device) {
  std::map<std::string, Seen> seen;
  for (const std::string& snapshot : snapshot_names(device)) seen[snapshot] = look_at(device, snapshot);
  seen[""] = look_at(device);
  return seen;
}

std::string same(const std::map<std::string, Seen>& expected, const std::map<std::string, Seen>& found) {
  if (expected.size() != found.size()) return fmt::format("{} states instead of {}", found.size(), expected.size());
  for (const auto& [snapshot, seen] : expected)
    if (const std::string difference = same(seen, found.at(snapshot)); !difference.empty()) return snapshot + ": " + difference;
  return "";
}

// But for what a repair leaves of a snapshot's tree.
std::uint64_t errors_left(const Outcome& outcome) {
  return outcome.errors_left() - outcome.after.problems.count(check::Code::snapshot_damaged);
}

void sweep(const std::string& name, const io::MemDevice& damaged, std::size_t most) {
  CrashDevice device(damaged);
  const auto whole = repair(device, fsck::recover, {.search = true});
  ASSERT_TRUE(whole.ok()) << name << ": " << whole.error().message();
  ASSERT_EQ(errors_left(*whole), 0U) << name;
  const auto finished = device.image_now();
  const auto expected = look_at_all(*finished);
  ASSERT_EQ(expected.at("").error, "") << name;
  for (const Cut& cut : device.cuts(CutPlan{.max_positions = most, .seeds = 1})) {
    const auto image = device.image(cut);
    const auto again = repair(*image, fsck::recover, {.search = true});
    ASSERT_TRUE(again.ok()) << name << " cut " << to_string(cut) << ": " << again.error().message();
    ASSERT_EQ(errors_left(*again), 0U) << name << " cut " << to_string(cut) << "\n" << check::test::lines(again->after);
    ASSERT_EQ(same(expected, look_at_all(*image)), "") << name << " cut " << to_string(cut);
  }
}

TEST(RepairCrash, EveryKindOfDamage) {
  const std::size_t most = varve::test::number_setting("VARVE_CRASH_POSITIONS", 6);
  for (const DamageCase& damage : damage_cases())
    if (damage.repairable) sweep(damage.name, *damage.make(), most);
}

TEST(RepairCrash, AnUncleanImageWithADamagedTree) {
  const auto image = populated_image(true);
  const auto blocks = metadata_blocks(*image);
  for (std::size_t i = 1; i < blocks.size(); i += blocks.size() / 12 + 1) {
    const auto device = image->snapshot();
    device->poke(blocks[i].v * kBlockSize, std::array<std::byte, kBlockSize>{});
    sweep(fmt::format("block {}", blocks[i]), *device, varve::test::number_setting("VARVE_CRASH_POSITIONS", 12));
  }
}

TEST(RepairCrash, AnImageWithSnapshots) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_with_snapshots(unclean);
    const auto blocks = metadata_blocks(*image);
    for (std::size_t i = 1; i < blocks.size(); i += blocks.size() / 6 + 1) {
      const auto device = image->snapshot();
      device->poke(blocks[i].v * kBlockSize, std::array<std::byte, kBlockSize>{});
      sweep(fmt::format("block {}", blocks[i]), *device, varve::test::number_setting("VARVE_CRASH_POSITIONS", 6));
    }
  }
}

}  // namespace
}  // namespace varve::repair::test
