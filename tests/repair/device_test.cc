// Devices that cannot be read in places, and searches that must find nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "check/checking.h"
#include "fsck/recovery.h"
#include "io/trace_device.h"
#include "repair/node_surgery.h"
#include "repair/repair.h"
#include "support/fault_device.h"

namespace varve::repair::test {
namespace {

using check::Code;
using varve::test::Fault;
using varve::test::FaultDevice;

Outcome run(io::BlockDevice& device) {
  auto done = repair(device, fsck::recover, {.search = true});
  EXPECT_TRUE(done.ok()) << done.error().message();
  return done.ok() ? std::move(done).value() : Outcome{};
}

// Reads of the block fail for ever; a repair goes on with the rest of the device.
void expect_repair_without(BlockAddr address, const io::MemDevice& image, Code code) {
  const auto copy = image.snapshot();
  FaultDevice faulty(*copy);
  Fault fault;
  fault.kind = io::IoKind::read;
  fault.times = Fault::kForEver;
  fault.touches_block = address.v;
  faulty.add(fault);
  const Outcome done = run(faulty);
  EXPECT_EQ(done.before.problems.count(code), 1U) << check::test::lines(done.before);
  // What cannot be read stays so, also when it was written.
  if (code == Code::superblock_unreadable) return;
  EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
}

TEST(RepairDevice, UnreadableBlocks) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  expect_repair_without(BlockAddr{builder.super().device_blocks - 1}, *image, Code::superblock_unreadable);
  expect_repair_without(node_of(builder, format::TreeId::inode_file, 0, 2), *image, Code::node_unreadable);
  expect_repair_without(node_of(builder, format::TreeId::inode_file, 1), *image, Code::node_unreadable);
  expect_repair_without(node_of(builder, format::TreeId::reverse_map, 1), *image, Code::node_unreadable);
}

// Nobody can bring the bytes back: the block stays with its file, and stays an error, also when the maps are made anew.
TEST(RepairDevice, UnreadableDataIsReportedAndKept) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  const auto owned = std::ranges::find_if(builder.owners(), [](const auto& entry) {
    return entry.second.owner == format::Owner::file_block && entry.second.block == 3;
  });
  ASSERT_NE(owned, builder.owners().end());
  for (const bool map_lost : {false, true}) {
    const auto copy = image->snapshot();
    if (map_lost) wipe(*copy, node_of(builder, format::TreeId::reverse_map, 1));
    FaultDevice faulty(*copy);
    Fault fault;
    fault.kind = io::IoKind::read;
    fault.times = Fault::kForEver;
    fault.touches_block = owned->first;
    faulty.add(fault);
    const auto done = repair(faulty, fsck::recover, {.search = true, .verify_data = true});
    ASSERT_TRUE(done.ok()) << done.error().message();
    for (const check::Report* report : {&done->before, &done->after}) {
      ASSERT_EQ(report->problems.count(Code::data_unreadable), 1U) << check::test::lines(*report);
      for (const check::Problem& problem : report->problems.kept()) {
        if (problem.code != Code::data_unreadable) continue;
        EXPECT_EQ(problem.where.address.v, owned->first);
        EXPECT_EQ(problem.where.ino, owned->second.ino);
        EXPECT_THAT(check::detail_of(problem), testing::HasSubstr("file block 3"));
      }
    }
    EXPECT_EQ(done->errors_left(), 1U) << check::test::lines(done->after);
    EXPECT_EQ(done->actions.empty(), !map_lost) << "there is nothing to be done about the block";
  }
}

// The first superblock has been written by then: there is no way back, and what is lost is told.
TEST(RepairDevice, ASwitchThatFailsHalfwayIsTold) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  wipe(*image, node_of(builder, format::TreeId::inode_file, 0, 2));
  for (const bool at_end : {false, true}) {
    FaultDevice faulty(*image);
    faulty.add({.kind = io::IoKind::write, .times = Fault::kForEver, .touches_block = at_end ? builder.super().device_blocks - 1 : 0});
    const auto done = repair(faulty, fsck::recover, {});
    const auto now = check::check(*image, {});
    ASSERT_TRUE(now.ok()) << now.error().message();
    if (now->super.serial == builder.super().serial) continue;
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_TRUE(done->ended.fails_with(Errc::io));
    EXPECT_GT(done->actions.losses(), 0U);
    return;
  }
  FAIL() << "it was written neither way";
}

TEST(RepairDevice, NothingOfVarveIsLeftAlone) {
  io::MemDevice device(16 << 20);
  const std::vector<std::byte> noise(kBlockSize, std::byte{0x5A});
  device.poke(8 * kBlockSize, noise);
  io::TraceDevice counted(device);
  EXPECT_TRUE(repair(counted, fsck::recover, {.search = true}).fails_with(Errc::not_varve));
  EXPECT_EQ(counted.counts()[io::IoKind::write].requests, 0U);
}

TEST(RepairDevice, TheFilesystemMadeLastIsFound) {
  ImageBuilder before;
  check::test::fill(before);
  const auto device = before.build();
  SeededRandom random(9);
  auto parameters = format::MakeParameters{.device_blocks = 16384, .label = "second", .uuid = {}, .now = {200, 0}};
  const auto made = *format::make_filesystem(parameters, random);
  for (const auto& node : made.nodes) device->poke(node.address.v * kBlockSize, node.bytes);
  wipe(*device, BlockAddr{0});
  wipe(*device, BlockAddr{16383});
  const Outcome done = run(*device);
  EXPECT_EQ(done.after.super.label, "second");
  EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
}

TEST(RepairDevice, EveryProblemHasARemedy) {
#define X(number, name, severity, text) EXPECT_STRNE(remedy_of(Code::name), "none") << #name;
  VARVE_PROBLEMS(X)
#undef X
}

}  // namespace
}  // namespace varve::repair::test
