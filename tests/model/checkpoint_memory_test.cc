// What a checkpoint keeps in memory does not grow with what it merges.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "format/map_record.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "segments/counters.h"
#include "space/hole_feeder.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr std::array<std::byte, kBlockSize> kZeros{};

// Looks at each request how much memory the program has, less what the device itself stores. Blocks of zeros it does not store.
class WatchedDevice : public io::MemDevice {
 public:
  explicit WatchedDevice(std::uint64_t bytes) : io::MemDevice(bytes), stored_(bytes >> kBlockShift) {}

  int execute(io::IoRequest& request) override {
    most_ = std::max(most_, memory());
    if (request.kind != io::IoKind::write) return io::MemDevice::execute(request);
    std::uint64_t at = request.offset;
    for (const iovec& part : request.iov)
      for (std::size_t done = 0; done < part.iov_len; done += kBlockSize, at += kBlockSize)
        store(at, {static_cast<const std::byte*>(part.iov_base) + done, kBlockSize});
    return 0;
  }

  void begin() { most_ = begun_ = memory(); }
  std::size_t more() const { return most_ - begun_; }  // at most, since begin()

 private:
  static constexpr std::size_t kStoredBlock = sizeof(io::MemStore::Block) + sizeof(std::size_t);
  std::size_t memory() const {
    const struct mallinfo2 info = mallinfo2();  // zeros, if a sanitizer replaces malloc
    if (!info.uordblks) return 0;
    return info.uordblks + info.hblkhd - blocks_ * kStoredBlock;
  }
  void store(std::uint64_t offset, std::span<const std::byte> block) {
    const bool zero = std::memcmp(block.data(), kZeros.data(), kBlockSize) == 0;
    auto stored = stored_[offset >> kBlockShift];
    blocks_ += zero ? 0 : 1;
    blocks_ -= stored ? 1 : 0;
    if (zero && stored) {
      io::IoRequest discard;
      discard.kind = io::IoKind::discard;
      discard.offset = offset;
      discard.length = kBlockSize;
      io::MemDevice::execute(discard);
    } else if (!zero) {
      poke(offset, block);
    }
    stored = !zero;
  }

  std::vector<bool> stored_;
  std::size_t blocks_ = 0, most_ = 0, begun_ = 0;
};

class CheckpointMemory : public ::testing::Test {
 protected:
  void make(std::uint64_t device_bytes) {
    device_ = std::make_unique<WatchedDevice>(device_bytes);
    ASSERT_TRUE(make_image(*device_, {}).ok());
    fs::Options options = test_options(clock_, random_);
    options.memory_bytes = 8u << 20;
    options.cleaner = false;
    fixture_ = std::make_unique<FsFixture>(*device_, options);
    ASSERT_TRUE(fixture_->mount().ok());
  }
  fs::Filesystem& fs() { return fixture_->fs(); }
  store::Store& store() { return fs().engine().store(); }
  Ino make_file(const std::string& path) { return fixture_->make(path, S_IFREG | 0644).value().ino; }
  // Pieces of `blocks`, the first at the beginning, the next `stride` blocks after it.
  void write(Ino ino, std::uint64_t pieces, std::uint64_t blocks, std::uint64_t stride) {
    const std::vector<std::byte> zeros(blocks * kBlockSize);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      ASSERT_TRUE(fixture_->write(ino, i * stride * kBlockSize, zeros).ok());
      if (i * blocks % 256 == 0) {
        ASSERT_TRUE(fixture_->work().ok());
      }
    }
  }
  void checkpoint() { ASSERT_TRUE(store().checkpoints().make({}).ok()); }
  std::size_t memory_of_checkpoint() {
    device_->begin();
    checkpoint();
    return device_->more();
  }
  void finish() {
    ASSERT_TRUE(fixture_->unmount().ok());
    EXPECT_TRUE(good(check_image(*device_, false)));
  }

  ManualClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<WatchedDevice> device_;
  std::unique_ptr<FsFixture> fixture_;
};

TEST_F(CheckpointMemory, does_not_grow_with_the_extents_of_a_removed_file) {
  const std::uint64_t extents = number_setting("VARVE_EXTENTS", 200'000);
  make(extents * kBlockSize / 2 * 3 + (64u << 20));
  const Ino file = make_file("/scattered");
  write(file, extents, 1, 2);
  checkpoint();
  ASSERT_TRUE(fixture_->call([&](fs::Operation& op) { return fs().unlink(op, kRootIno, "scattered"); }).ok());
  const std::size_t more = memory_of_checkpoint();
  RecordProperty("bytes", std::to_string(more));
  EXPECT_LT(more, extents * 16);
  finish();
}

// A block of users in each leaf of the reverse map.
TEST_F(CheckpointMemory, does_not_hold_the_leaves_of_the_reverse_map) {
  const std::uint64_t leaves = number_setting("VARVE_LEAVES", 2'500);
  const std::uint64_t per_leaf = format::reverse_map_shape(1).per_leaf();
  make(leaves * per_leaf * kBlockSize / 4 * 5 + (64u << 20));
  const Ino file = make_file("/punched");
  write(file, leaves, per_leaf, per_leaf);
  for (std::uint64_t i = 0; i < leaves; ++i)
    ASSERT_TRUE(fixture_->call([&](fs::Operation& op) {
      return fs().fallocate(op, file, fs::FallocateMode::punch_hole, i * per_leaf * kBlockSize, kBlockSize);
    }).ok());
  checkpoint();
  store().hole_feeder().begin(this, {.least_run = 1});
  write(make_file("/scattered"), leaves - leaves / 8, 1, 1);
  store().hole_feeder().end(this);
  const std::uint64_t before = store().counters().node_blocks;
  const std::size_t more = memory_of_checkpoint();
  const std::uint64_t written = store().counters().node_blocks - before;
  RecordProperty("bytes", std::to_string(more));
  ASSERT_GT(written, leaves / 2) << "the test did not get what it is about";
  EXPECT_LT(more, written * kBlockSize / 2);
  finish();
}

}  // namespace
}  // namespace varve::test
