// Extents that go on in the neighbouring segment: what frees them concerns both.
#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/manual_clock.h"

namespace varve::test {
namespace {

// The records of two neighbouring segments may stand in different leaves of the free-region map. Every part of a file
// that lies over many segments is freed by itself, so that one of them crosses each such boundary.
void punch_everywhere(std::uint32_t segment_blocks, std::uint64_t kPunch) {
  const std::uint64_t kBlocks = 9000 / kPunch * kPunch;
  ManualClock clock;
  SeededRandom random(1);
  io::MemDevice device(64u << 20);
  ASSERT_TRUE(make_image(device, {.segment_blocks = segment_blocks}).ok());
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const auto file = fixture.make("/f", S_IFREG | 0644);
  ASSERT_TRUE(file.ok());
  const std::vector<std::byte> data(kBlocks * kBlockSize, std::byte{7});
  ASSERT_TRUE(fixture.write(file->ino, 0, data).ok());
  store::Store& store = fixture.store();
  ASSERT_TRUE(store.checkpoints().make({}).ok());
  for (std::uint64_t block = 0; block < kBlocks; block += kPunch) {
    const auto punched = fixture.call([&](fs::Operation& op) {
      return fixture.fs().fallocate(op, file->ino, fs::FallocateMode::punch_hole, block * kBlockSize, kPunch * kBlockSize);
    });
    ASSERT_TRUE(punched.ok()) << punched.error().message();
    const Status settled = store.checkpoints().make({});
    ASSERT_TRUE(settled.ok()) << "block " << block << ": " << settled.error().message();
  }
  ASSERT_TRUE(fixture.unmount().ok());
}

TEST(Neighbours, what_is_freed_across_segments_is_freed_in_both) {
  for (const std::uint32_t segment_blocks : {64U, 128U})
    for (const std::uint64_t punch : {7U, 40U, 100U}) punch_everywhere(segment_blocks, punch);
}

}  // namespace
}  // namespace varve::test
