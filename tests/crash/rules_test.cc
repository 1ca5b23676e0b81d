// Rules of the design review that are about where things stand and how much there is of them, not about a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/gate.h"
#include "changes/changes.h"
#include "checkpoint/checkpoints.h"
#include "fs/engine.h"
#include "image_tools.h"
#include "log/recovery.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"

namespace varve::test {
namespace {

Lsn last_chunk(store::Store& store) {
  const Gate::Pass pass(store.gate());
  return store.log().position().lsn;
}

// A checkpoint's nodes are no part of the log: however many there are, it grows by the one chunk that seals.
TEST(Hazards, H7_a_checkpoint_adds_no_more_than_its_seal_to_the_log) {
  World world({.bytes = 32u << 20, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  std::string steps = "mkdir /d 0755; ";
  for (int i = 0; i < 500; ++i) steps += fmt::format("create /d/{} 0644; write /d/{} 0 5000 {}; ", i, i, i + 1);
  ASSERT_TRUE(good(run_script(world.steps, script(steps))));
  store::Store& store = world.fixture.store();
  const Lsn before = last_chunk(store);
  const std::uint64_t nodes = store.counters().node_blocks;
  ASSERT_TRUE(world.fixture.checkpoint().ok());
  EXPECT_GT(store.counters().node_blocks - nodes, 10U);
  EXPECT_LE(last_chunk(store) - before, 1U);
}

// Whatever groups and heads there are, following the headers meets every chunk there is.
TEST(Hazards, H12_H13_every_chunk_is_in_the_one_chain) {
  World world({.bytes = 64u << 20, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  std::string steps = "create /small 0644; create /large 0644; ";
  for (int i = 0; i < 30; ++i)
    steps += fmt::format("write /small {} 3000 {}; seal; write /large {} 400000 {}; seal; ", i * 5000, i + 1,
                         i * 100000, i + 100);
  for (int i = 0; i < 100; ++i) steps += fmt::format("write /small {} 3000 {}; seal; ", i * 5000, i + 200);
  ASSERT_TRUE(good(run_script(world.steps, script(steps + "fsync /small"))));
  const Lsn last = last_chunk(world.fixture.store());
  world.fixture.crash();
  const format::Superblock super = superblock_of(world.device);
  const auto followed = log::recover_chain(
      world.device, super, [](const format::Chunk&) { return Status{}; }, log::RecoveryOptions{});
  ASSERT_TRUE(followed.ok()) << followed.error().message();
  EXPECT_GT(followed->chunks, 20U);
  EXPECT_EQ(followed->chunks, last - super.lsn);
  const auto found = chain_of(world.device);
  EXPECT_EQ(followed->chunks, found.size()) << "found wherever they stand";
  std::set<std::uint64_t> segments;
  for (const FoundChunk& chunk : found) segments.insert((chunk.header.address - super.first_segment) / super.segment_blocks);
  EXPECT_GE(segments.size(), 3U) << "the chain has gone on elsewhere";
}

// What was pending when a checkpoint froze is in its trees, and no recovery applies it to them once more: its log begins
// behind it, with what came later.
TEST(Hazards, H19_nothing_that_a_checkpoint_holds_is_replayed_on_it) {
  World world({.bytes = 32u << 20, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  for (std::uint64_t later = 0; later < 3; ++later) {
    const std::string pending = fmt::format("create /f{0} 0644; write /f{0} 0 300000 2; truncate /f{0} 4096", later);
    ASSERT_TRUE(good(run_script(world.steps, script(pending))));
    const Lsn before = last_chunk(world.fixture.store());
    ASSERT_TRUE(world.fixture.checkpoint().ok());
    ASSERT_GT(last_chunk(world.fixture.store()), before) << "nothing was pending";
    for (std::uint64_t i = 0; i < later; ++i)
      ASSERT_TRUE(good(run_script(world.steps, script(fmt::format("create /g{}-{} 0644; seal", later, i)))));
    world.fixture.crash();
    ASSERT_TRUE(world.fixture.mount().ok());
    EXPECT_EQ(world.fixture.store().counters().replayed_chunks, later);
  }
}

// Neither what waits for a checkpoint nor what a recovery has to hold grows without bound.
TEST(Hazards, H23_what_a_checkpoint_has_to_merge_is_bounded) {
  constexpr std::uint64_t kRecords = 400;
  World world({.bytes = 32u << 20, .image = {}, .lockstep = {}, .options = [](fs::Options& o) {
                 o.checkpoint_records = kRecords;
               }});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("mkdir /d 0755; create /f 0644"))));
  std::uint64_t most_records = 0, most_log = 0;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_TRUE(good(run_script(world.steps, script(fmt::format("write /f {} 4096 {}; setxattr /d user.{} 10 1 set",
                                                                i % 97 * 8192, i + 1, i % 11)))));
    most_records = std::max(most_records, world.fixture.store().changes().count_records());
    most_log = std::max(most_log, world.fixture.store().checkpoints().log_blocks_since());
  }
  EXPECT_GT(most_records, kRecords / 2);
  EXPECT_LT(most_records, kRecords + 100);
  EXPECT_LT(most_log, world.device.geometry().blocks() / 2 + 512);
}

// The same by its length, where records are few.
TEST(Hazards, H23_what_a_recovery_has_to_follow_is_bounded) {
  World world({.bytes = 32u << 20, .image = {}, .lockstep = {}, .options = [](fs::Options& o) {
                 o.checkpoint_records = 1'000'000;
               }});
  ASSERT_TRUE(good(world.start()));
  const Ino file = world.fixture.make("/f", 0100644)->ino;
  const std::vector<std::byte> content(90000, std::byte{1});
  std::uint64_t most_log = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(world.fixture.write(file, i % 5 * 90112, content).ok());
    if (i % 5 == 4) {  // or the next would take its place in memory
      ASSERT_TRUE(world.fixture.seal().ok());
    }
    most_log = std::max(most_log, world.fixture.store().checkpoints().log_blocks_since());
  }
  EXPECT_GT(most_log, 1500U);
  EXPECT_LT(most_log, world.device.geometry().blocks() / 2);
}

// A block is overwritten while its write is in flight: the write's bytes, whose checksum is in the log, must not change.
TEST(Hazards, H47_bytes_in_flight_do_not_change) {
  for (std::uint64_t order = 0; order < 6; ++order) {
    CrashSetup setup;
    setup.bytes = 32u << 20;
    setup.completion_seed = order;
    SweepOptions options = exhaustive();
    options.plan.seed = order + 1;
    ASSERT_TRUE(good(
        sweep_all(setup, "create /f 0644; write /f 0 300000 1",
                  "write /f 0 300000 2; seal; write /f 5000 100 3; seal; write /f 5050 100 4; seal; truncate /f 6000;"
                  "seal; write /f 0 300000 5; seal; fallocate /f punch 100 200; seal; write /f 90 20 6; fsync /f",
                  options)));
  }
}

// Remembers how often each block was written.
class WriteCounter : public io::MemDevice {
 public:
  using io::MemDevice::MemDevice;
  int execute(io::IoRequest& request) override {
    if (request.kind == io::IoKind::write) {
      std::lock_guard lock(mutex_);
      for (std::uint64_t b = 0; b < block_of(request.length); ++b) ++counts_[block_of(request.offset) + b];
    }
    return io::MemDevice::execute(request);
  }
  void forget() {
    std::lock_guard lock(mutex_);
    counts_.clear();
  }
  std::map<std::uint64_t, unsigned> counts() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, unsigned> counts_;
};

// On a device that never fills up, a mount writes no block twice but the superblocks: not for checkpoints, in the
// cleaner, or in a recovery. (The next mount may begin where an earlier one has left a segment clean.)
TEST(Hazards, H49_only_superblocks_are_overwritten) {
  WriteCounter device(256u << 20);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(3);
  std::uint64_t blocks = 0;
  const std::uint64_t first_segment = superblock_of(device).first_segment.v;
  const std::uint64_t last = device.geometry().blocks() - 1;
  for (int mount = 0; mount < 5; ++mount) {
    device.forget();
    FsFixture fixture(device, test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    for (int i = 0; i < 40; ++i) {
      const std::string path = fmt::format("/{}-{}", mount, i);
      const auto made = fixture.make(path, 0100644);
      ASSERT_TRUE(made.ok());
      ASSERT_TRUE(
          fixture.write(made->ino, 0, std::vector<std::byte>(static_cast<std::size_t>(i) * 3000 + 1, std::byte{1}))
              .ok());
      ASSERT_TRUE(i % 3 || fixture.seal().ok());
      ASSERT_TRUE(i % 7 || fixture.checkpoint().ok());
      ASSERT_TRUE(fixture.work().ok());
    }
    if (mount % 2) {
      fixture.crash();
    } else {
      ASSERT_TRUE(fixture.unmount().ok());
    }
    for (const auto& [block, times] : device.counts()) {
      if (block == 0 || block == last || block < first_segment) continue;
      ++blocks;
      EXPECT_EQ(times, 1U) << "block " << block << ", mount " << mount;
    }
  }
  EXPECT_GT(blocks, 2000U);
}

}  // namespace
}  // namespace varve::test
