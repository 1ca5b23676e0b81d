// A filesystem whose host has no room for what it writes, and has it again.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>
#include <memory>

#include "checkpoint/checkpoints.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "io/holding_device.h"
#include "jobs/jobs.h"
#include "store/store.h"
#include "support/crash_device.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/manual_clock.h"
#include "support/pattern.h"
#include "support/waiting.h"
#include "support/world.h"

namespace varve::test {
namespace {

using namespace std::chrono_literals;

fs::Options with_threads(fs::Options options) {
  options.background = true;
  options.host_patience_ms = 30;
  return options;
}

class FullHost : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(memory_, {}).ok());
    device_ = std::make_unique<CrashDevice>(memory_);
    faulty_ = std::make_unique<FaultDevice>(*device_);
    mount(with_threads(test_options(clock_, random_)));
    kept_ = make("/kept");
    ASSERT_TRUE(fixture_->write(kept_, 0, pattern_bytes(1, 0, 100'000)).ok());
    ASSERT_TRUE(sync().ok());
  }
  void mount(const fs::Options& options) {
    holding_ = std::make_unique<io::HoldingDevice>(*faulty_, io::HoldingTimes{200us, 1ms, 10ms});
    fixture_ = std::make_unique<FsFixture>(*holding_, options);
    ASSERT_TRUE(fixture_->mount().ok());
    ASSERT_TRUE(holding_->begin([this](io::HoldingDevice::News news) {
      fixture_->fs().set_host_full(news != io::HoldingDevice::News::over);
    }).ok());
  }
  void TearDown() override {
    holding_->forget_listener();
    fixture_.reset();
  }

  Ino make(const std::string& path) {
    const auto made = fixture_->make(path, S_IFREG | 0644);
    EXPECT_TRUE(made.ok());
    return made.ok() ? made->ino : Ino{};
  }
  Status sync() {
    return fixture_->call([&](fs::Operation& op) { return fixture_->fs().sync(op); });
  }
  void fill(std::optional<io::IoKind> kind = io::IoKind::write) {
    Fault fault;
    fault.kind = kind;
    fault.times = Fault::kForEver;
    fault.error = ENOSPC;
    faulty_->add(fault);
  }
  bool is_full() { return fixture_->store().faults().host_full(); }
  void make_room() {
    faulty_->heal();
    wait_until([&] { return !is_full(); });
  }
  // Something was acknowledged, and cannot be written.
  Ino write_in_vain(const std::string& path = "/late") {
    const Ino late = make(path);
    EXPECT_TRUE(fixture_->write(late, 0, pattern_bytes(2, 0, 300'000)).ok());
    fill();
    EXPECT_TRUE(sync().fails_with(Errc::host_full));
    return late;
  }
  bool has(FsFixture& fixture, const std::string& path, std::uint64_t seed, std::size_t bytes) {
    const auto ino = fixture.resolve(path);
    if (!ino.ok()) return false;
    const auto found = fixture.read(*ino, 0, bytes);
    return found.ok() && *found == pattern_bytes(seed, 0, bytes);
  }
  // The image that a power cut leaves is mounted.
  void look_at_cut(const Cut& cut, const std::function<void(FsFixture&)>& look) {
    const auto image = device_->image(cut);
    ManualClock clock;
    SeededRandom random(5);
    FsFixture again(*image, test_options(clock, random));
    ASSERT_TRUE(again.mount().ok());
    look(again);
    ASSERT_TRUE(again.unmount().ok());
    EXPECT_TRUE(good(check_image(*image, true)));
  }

  io::MemDevice memory_{32u << 20};
  ManualClock clock_;
  SeededRandom random_{3};
  std::unique_ptr<CrashDevice> device_;
  std::unique_ptr<FaultDevice> faulty_;
  std::unique_ptr<io::HoldingDevice> holding_;
  std::unique_ptr<FsFixture> fixture_;
  Ino kept_;
};

TEST_F(FullHost, GoesOnByItselfWhenThereIsRoom) {
  const Ino late = write_in_vain();
  EXPECT_TRUE(sync().fails_with(Errc::host_full)) << "each of them says so";
  EXPECT_EQ(sync().error().to_errno(), ENOSPC);
  EXPECT_FALSE(fixture_->fs().read_only());
  EXPECT_TRUE(fixture_->make("/refused", S_IFREG | 0644).fails_with(Errc::host_full));
  EXPECT_TRUE(fixture_->write(late, 0, pattern_bytes(3, 0, 5000)).fails_with(Errc::host_full));
  EXPECT_TRUE(fixture_->checkpoint().fails_with(Errc::host_full));
  EXPECT_TRUE(has(*fixture_, "/late", 2, 300'000)) << "what is held can be read";
  EXPECT_GT(holding_->room().held_bytes, 300'000U);
  make_room();
  EXPECT_TRUE(sync().ok());
  EXPECT_TRUE(fixture_->write(make("/after"), 0, pattern_bytes(4, 0, 70'000)).ok());
  EXPECT_TRUE(fixture_->checkpoint().ok());
  EXPECT_TRUE(has(*fixture_, "/late", 2, 300'000));
  EXPECT_EQ(holding_->room().held_bytes, 0U);
  EXPECT_TRUE(fixture_->unmount().ok());
  look_at_cut({device_->position()}, [&](FsFixture& again) {
    EXPECT_TRUE(has(again, "/kept", 1, 100'000));
    EXPECT_TRUE(has(again, "/late", 2, 300'000));
    EXPECT_TRUE(has(again, "/after", 4, 70'000));
    EXPECT_FALSE(again.resolve("/refused").ok());
  });
}

// Sync after sync, each with something new in front of it, as long as the host lets it: what comes back is all up to one of them.
TEST_F(FullHost, APowerCutMeanwhileLeavesAPrefix) {
  for (const std::uint64_t n : {1, 2, 3, 4})
    ASSERT_TRUE(fixture_->write(make("/f" + std::to_string(n)), 0, pattern_bytes(n, 0, 50'000)).ok());
  ASSERT_TRUE(sync().ok());
  const std::size_t synced = device_->position();
  write_in_vain();
  const std::size_t full = device_->position();
  std::vector<Cut> cuts = device_->cuts({.first = synced, .last = full, .seeds = 3});
  make_room();
  ASSERT_TRUE(sync().ok());
  const std::size_t again_synced = device_->position();
  for (const Cut& cut : device_->cuts({.first = full, .last = again_synced, .max_positions = 8, .seeds = 2})) cuts.push_back(cut);
  for (const Cut& cut : cuts)
    look_at_cut(cut, [&](FsFixture& again) {
      EXPECT_TRUE(has(again, "/kept", 1, 100'000)) << to_string(cut);
      for (const std::uint64_t n : {1, 2, 3, 4}) EXPECT_TRUE(has(again, "/f" + std::to_string(n), n, 50'000)) << to_string(cut);
      if (again.resolve("/late").ok() || cut.position >= again_synced) {
        EXPECT_TRUE(has(again, "/late", 2, 300'000)) << to_string(cut);
      }
    });
}

// Its nodes and superblocks are held as well. Each step waits for the one before, so that none overtakes another.
TEST_F(FullHost, ACheckpointWaitsAndGoesOn) {
  const std::uint64_t before = fixture_->store().checkpoints().settled().v;
  fixture_->fs().engine().jobs().requests().ask_for_checkpoint();
  ASSERT_TRUE(fixture_->checkpoint().ok());
  ASSERT_GT(fixture_->store().checkpoints().settled().v, before);
  for (const std::uint64_t nth : {1, 2, 3, 4, 5, 6}) {
    ASSERT_TRUE(fixture_->write(kept_, 0, pattern_bytes(1, 0, 100'000)).ok());
    ASSERT_TRUE(sync().ok());
    Fault fault;
    fault.kind = io::IoKind::write;
    fault.nth = nth;
    fault.times = Fault::kForEver;
    fault.error = ENOSPC;
    faulty_->add(fault);
    const std::uint64_t settled = fixture_->store().checkpoints().settled().v;
    const std::uint64_t times = holding_->room().times;
    fixture_->fs().engine().jobs().requests().ask_for_checkpoint();
    wait_until([&] { return holding_->room().times > times || fixture_->store().checkpoints().settled().v > settled; });
    look_at_cut({device_->position(), CutPolicy::lost}, [&](FsFixture& again) { EXPECT_TRUE(has(again, "/kept", 1, 100'000)); });
    make_room();
    wait_until([&] { return fixture_->store().checkpoints().settled().v > settled; });
  }
  EXPECT_GT(holding_->room().times, 2U);
  EXPECT_TRUE(fixture_->unmount().ok());
  look_at_cut({device_->position()}, [&](FsFixture& again) { EXPECT_TRUE(has(again, "/kept", 1, 100'000)); });
}

TEST_F(FullHost, AnUnmountDoesNotWaitForEver) {
  write_in_vain();
  const Status unmounted = fixture_->unmount();
  ASSERT_FALSE(unmounted.ok());
  EXPECT_NE(unmounted.error().message().find("make room"), std::string::npos) << unmounted.error().message();
  EXPECT_TRUE(fixture_->fs().read_only());
  look_at_cut({device_->position(), CutPolicy::scramble, 7}, [&](FsFixture& again) { EXPECT_TRUE(has(again, "/kept", 1, 100'000)); });
}

TEST_F(FullHost, AnUnmountWaitsForRoom) {
  holding_->forget_listener();
  fixture_.reset();
  fs::Options options = with_threads(test_options(clock_, random_));
  options.host_patience_ms = 600'000;
  mount(options);
  write_in_vain();
  auto unmounted = std::async(std::launch::async, [this] { return fixture_->fs().unmount(); });
  wait_until([this, told = faulty_->hits()] { return faulty_->hits() > told + 5; });
  faulty_->heal();
  EXPECT_TRUE(unmounted.get().ok());
  look_at_cut({device_->position()}, [&](FsFixture& again) { EXPECT_TRUE(has(again, "/late", 2, 300'000)); });
}

// They would wait for a checkpoint, or for the cleaner, which have no room.
TEST_F(FullHost, NewNamesAndJobsAreRefused) {
  write_in_vain();
  EXPECT_TRUE(fixture_->fs().tune("label", "new").fails_with(Errc::host_full));
  EXPECT_TRUE(fixture_->fs().tune("uuid", "00112233-4455-6677-8899-aabbccddeeff").fails_with(Errc::host_full));
  EXPECT_TRUE(fixture_->fs().start_clean(jobs::CleanRequest{}).fails_with(Errc::host_full));
  EXPECT_TRUE(fixture_->fs().start_resize(jobs::ResizeRequest{std::uint64_t{16} << 20}).fails_with(Errc::host_full));
  make_room();
  EXPECT_TRUE(fixture_->fs().tune("label", "new").ok());
  EXPECT_TRUE(fixture_->checkpoint().ok());
  EXPECT_EQ(fixture_->fs().status().label, "new");
}

// A filesystem that is not to be trusted for another reason tries nothing again.
TEST_F(FullHost, AFilesystemThatBecomesReadOnlyHoldsNothing) {
  write_in_vain();
  fixture_->fs().stop_writing(Error(Errc::in_use, "a test"));
  wait_until([&] { return !holding_->room().is_full; });
  EXPECT_EQ(holding_->room().held_bytes, 0U);
  EXPECT_TRUE(has(*fixture_, "/late", 2, 300'000));
  EXPECT_FALSE(sync().ok());
}

TEST_F(FullHost, AFlushThatFailsIsTheEnd) {
  fill(io::IoKind::flush);
  ASSERT_TRUE(fixture_->write(kept_, 0, pattern_bytes(2, 0, 100'000)).ok());
  EXPECT_FALSE(sync().ok());
  faulty_->heal();
  EXPECT_FALSE(sync().ok());
  EXPECT_TRUE(fixture_->fs().read_only());
}

// It would keep its room until the next mount.
TEST_F(FullHost, AFileWithoutANameIsFreedWhenThereIsRoom) {
  const auto made = fixture_->call([&](fs::Operation& op) {
    return fixture_->fs().make_unnamed(op, kRootIno, {.mode = S_IFREG | 0644, .rdev = 0, .umask = 0, .symlink = {}});
  });
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(sync().ok());
  write_in_vain();
  fixture_->fs().forget(made->ino, 1);
  EXPECT_TRUE(fixture_->fs().engine().jobs().reaper().anything_waits());
  make_room();
  wait_until([&] { return !fixture_->fs().engine().jobs().reaper().anything_waits(); });
  EXPECT_TRUE(fixture_->getattr(made->ino).fails_with(Errc::stale));
}

// Blocks that are free inside, which the host was never told, may be the room that is lacking.
TEST_F(FullHost, ATrimIsLetThrough) {
  write_in_vain();
  const auto trimmed = fixture_->call([&](fs::Operation& op) { return fixture_->fs().trim(op, 0, UINT64_MAX, 0); });
  ASSERT_TRUE(trimmed.ok()) << trimmed.error().message();
  EXPECT_GT(*trimmed, 1u << 20);
  make_room();
  EXPECT_TRUE(sync().ok());
}

}  // namespace
}  // namespace varve::test
