// Power cuts of a filesystem whose own threads are at work.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/types.h"
#include "changes/staging.h"
#include "checkpoint/checkpoints.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "jobs/jobs.h"
#include "store/store.h"
#include "support/crash_scenario.h"
#include "support/pattern.h"
#include "support/settings.h"
#include "support/waiting.h"

namespace varve::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Live {
  explicit Live(std::uint64_t seed, const CrashSetup& setup = {})
      : start(prepare(setup, {})), device(*start.image), random(seed), fixture(device, options()) {}

  fs::Options options() {
    fs::Options result = test_options(clock, random);
    result.background = true;
    return result;
  }
  store::Store& store() { return fixture.store(); }
  // Would it be there if the power went now, and all that is not durable with it?
  bool survives(const std::string& path, std::uint64_t offset = 0, const std::vector<std::byte>& content = {}) {
    const auto image = device.image(Cut{device.position(), CutPolicy::lost, 0});
    ManualClock its_clock;
    SeededRandom its_random(3);
    FsFixture after(*image, test_options(its_clock, its_random));
    if (!after.mount().ok()) return false;
    const auto file = after.resolve(path);
    if (!file.ok() || content.empty()) return file.ok();
    const auto found = after.read(*file, offset, content.size());
    return found.ok() && *found == content;
  }

  DurableState start;
  CrashDevice device;
  ManualClock clock;
  SeededRandom random;
  FsFixture fixture;
};

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {  // only what hangs takes so long
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // between two looks, each of which mounts an image
  }
  return condition();
}

// What sees an operation comes after it: what a thread made because it saw another thread's file implies that file.
TEST(Hazards, H4_what_was_seen_is_in_the_prefix) {
  constexpr int kFiles = 300;
  Live live(1);
  ASSERT_TRUE(live.fixture.mount().ok());
  ASSERT_TRUE(live.fixture.make("/a", S_IFDIR | 0755).ok());
  ASSERT_TRUE(live.fixture.make("/b", S_IFDIR | 0755).ok());
  std::thread first([&] {
    for (int i = 0; i < kFiles; ++i) EXPECT_TRUE(live.fixture.make(fmt::format("/a/{}", i), S_IFREG | 0644).ok());
  });
  std::thread second([&] {
    for (int i = 0; i < kFiles; ++i) {
      while (!live.fixture.resolve(fmt::format("/a/{}", i)).ok()) std::this_thread::yield();
      EXPECT_TRUE(live.fixture.make(fmt::format("/b/{}", i), S_IFREG | 0644).ok());
    }
  });
  std::thread third([&] {
    for (int i = 0; i < 60; ++i) {
      EXPECT_TRUE(live.fixture.call([&](fs::Operation& op) { return live.fixture.fs().fsync(op, kRootIno); }).ok());
    }
  });
  first.join();
  second.join();
  third.join();
  live.fixture.crash();
  for (const Cut& cut : live.device.cuts(CutPlan{.max_positions = 60, .seeds = 1, .seed = first_seed()})) {
    const auto image = live.device.image(cut);
    ManualClock clock;
    SeededRandom random(2);
    FsFixture fixture(*image, test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok()) << to_string(cut);
    if (!fixture.resolve("/b").ok()) continue;
    const std::size_t a = fixture.list(*fixture.resolve("/a"))->size();
    const std::size_t b = fixture.list(*fixture.resolve("/b"))->size();
    EXPECT_GE(a, b) << to_string(cut) << ": a file was made after one that is not there";
  }
}

// Nobody calls sync; the oldest operation is durable after seal_delay_ms all the same.
TEST(Hazards, H48_operations_become_durable_without_being_asked) {
  Live live(2);
  ASSERT_TRUE(live.fixture.mount().ok());
  ASSERT_TRUE(live.fixture.make("/quiet", S_IFREG | 0644).ok());
  int seconds = 0;
  EXPECT_TRUE(eventually([&] {
    if (seconds++ < 40) live.clock.advance(kSecond);  // less than what makes an idle filesystem checkpoint
    return live.survives("/quiet");
  }));
}

// A file of which nothing waits to be written any more, so that a checkpoint has no reason to come.
class Unattended : public ::testing::Test {
 protected:
  void SetUp() override {
    live.fixture.options().seal_delay_ms = 5000;
    live.fixture.options().cleaner = false;  // it would wait for idle time with the engine's threads awake
    ASSERT_TRUE(live.fixture.mount().ok());
    file = live.fixture.make("/f", S_IFREG | 0644)->ino;
    ASSERT_TRUE(live.fixture.checkpoint().ok());
    serial = live.store().checkpoints().settled();
  }
  void TearDown() override { EXPECT_EQ(live.store().checkpoints().settled(), serial) << "a checkpoint has flushed in its place"; }

  // Until the engine's threads have nothing to look after: the one thread says so, and the other, which asks it before it sleeps, has been
  // awake since.
  void let_threads_rest() {
    wait_until([&] { return !live.fixture.fs().engine().jobs().requests().is_armed(); });
    std::atomic<bool> done{false};
    AlignedBuffer block(kBlockSize);
    io::IoRequest look;
    look.add(block.data(), block.size());
    look.done = [&](io::IoRequest&) { done = true; };
    live.store().io().start(look);
    wait_until([&] { return done.load(); });
  }
  static std::vector<std::byte> piece(std::uint64_t n) { return pattern_bytes(n + 1, 0, kMiB); }
  // Until so much waits that it is sealed: how much that is goes by the time that writes take here.
  void write() {
    constexpr std::uint64_t kMost = 6;
    std::uint64_t wrote = 0;
    do {
      ASSERT_LT(wrote++, kMost);
      ASSERT_TRUE(live.fixture.write(file, pieces * kMiB, piece(pieces)).ok());
      ++pieces;
    } while (live.store().staging().unsealed().payload_bytes() > 0);
  }
  bool survives(std::uint64_t n) { return live.survives("/f", n * kMiB, piece(n)); }

  Live live{4, {.bytes = 256u << 20}};
  Ino file;
  Serial serial;
  std::uint64_t pieces = 0;
};

// What is sealed because it is much waits for nobody either.
TEST_F(Unattended, H48_what_was_sealed_for_its_size_becomes_durable) {
  let_threads_rest();
  {
    const auto reactor = io::Reactor::make();  // of a serving thread: the engine's threads have no part in what it writes
    fs::Operation operation(live.fixture.fs().operations(), {}, reactor.get());
    const auto data = piece(0);
    ASSERT_TRUE(fs::block_on(operation, [&] { return live.fixture.fs().write(operation, file, 0, data, fs::WriteFlags{}); }).ok());
    ASSERT_EQ(live.store().staging().unsealed().payload_bytes(), 0U);
    while (reactor->in_flight()) reactor->wait(-1);
  }
  live.clock.advance(10 * kSecond);
  EXPECT_TRUE(eventually([&] { return live.survives("/f", 0, piece(0)); }));
}

// Nor does what comes after it put that off, and all of it shares a flush.
TEST_F(Unattended, H48_what_a_steady_writer_has_written_becomes_durable) {
  constexpr std::uint64_t kSeconds = 20, kDelay = 5;
  const std::size_t before = live.device.flushes();
  std::vector<std::uint64_t> last;  // piece of each second
  for (std::uint64_t n = 0; n < kSeconds; ++n) {
    ASSERT_NO_FATAL_FAILURE(write());
    last.push_back(pieces - 1);
    live.clock.advance(kSecond);
    live.fixture.fs().engine().jobs().requests().kick();  // its timer goes by the other clock
  }
  for (std::uint64_t n = 0; n + kDelay < kSeconds; ++n) ASSERT_TRUE(eventually([&] { return survives(last[n]); })) << "second " << n;
  EXPECT_LE(live.device.flushes(), before + kSeconds / kDelay);
}

}  // namespace
}  // namespace varve::test
