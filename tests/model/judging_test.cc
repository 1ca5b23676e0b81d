// A device that is not what it says: the adaptive strategy finds out in seconds of the device's time, and writers wait no longer
// than one round takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "checkpoint/superblock_keeper.h"
#include "device/io_context.h"
#include "device/write_cost.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "support/timed_device.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kBytes = 256u << 20, kPiece = 2 * kBlockSize;
constexpr std::uint64_t kSecond = 1'000'000'000;

// A virtual disk on a slow host: anything takes a while, wherever it is.
std::uint64_t virtual_disk(const io::IoRequest& request) { return 300'000 + request.length * 5; }

std::uint64_t virtual_disk_of_a_slow_host(const io::IoRequest& request) {
  return request.kind == io::IoKind::read ? 6'000'000 : virtual_disk(request);  // which tells nothing about its writes
}

// A cheap card: in a row it is quick, elsewhere it copies an allocation unit; five of them are open at a time.
class Card {
 public:
  std::uint64_t operator()(const io::IoRequest& request) {
    constexpr std::uint64_t kUnit = 1u << 20, kCopy = 70'000'000;
    const std::uint64_t transfer = 60'000 + request.length * 66;
    if (request.kind != io::IoKind::write) return request.kind == io::IoKind::read ? transfer : 60'000;
    const std::uint64_t end = request.offset + request.length;
    const auto open = std::ranges::find(ends_, request.offset);
    if (open != ends_.end()) {
      *open = end;
      return transfer;
    }
    const auto same = std::ranges::find(ends_, request.offset / kUnit, [](std::uint64_t at) { return (at - 1) / kUnit; });
    if (same != ends_.end()) ends_.erase(same);
    if (ends_.size() == 5) ends_.pop_front();
    ends_.push_back(end);
    return transfer + (request.offset % kUnit ? kCopy : 0);
  }

 private:
  std::deque<std::uint64_t> ends_;
};

class Disk {
 public:
  std::uint64_t operator()(const io::IoRequest& request) {
    const bool seeks = request.length && request.offset != head_;
    if (request.length) head_ = request.offset + request.length;
    return (seeks ? 9'000'000 : 50'000) + request.length * 12;
  }

 private:
  std::uint64_t head_ = 0;
};

// A disk that takes scattered writes into its cache at once, and carries them out when that is full or has to be empty: the cleaner's
// own small lots look as if they cost nothing.
class DiskWithCache {
 public:
  std::uint64_t operator()(const io::IoRequest& request) {
    constexpr std::uint64_t kRequest = 60'000;
    if (request.kind == io::IoKind::read) return disk_(request);
    if (request.kind == io::IoKind::flush) return kRequest + carry_out(waiting_.size());
    if (request.kind == io::IoKind::discard) return kRequest;
    waiting_.emplace(request.offset, request.length);
    bytes_ += request.length;
    return kRequest + (bytes_ > kCache ? carry_out(waiting_.size() / 2 + 1) : 0);
  }

 private:
  static constexpr std::uint64_t kCache = 2u << 20;

  std::uint64_t carry_out(std::size_t count) {  // in the order of addresses
    std::uint64_t ns = 0;
    for (; count > 0; --count) {
      io::IoRequest request;
      request.kind = io::IoKind::write;
      request.offset = waiting_.begin()->first;
      request.length = waiting_.begin()->second;
      bytes_ -= request.length;
      waiting_.erase(waiting_.begin());
      ns += disk_(request);
    }
    return ns;
  }

  std::multimap<std::uint64_t, std::uint64_t> waiting_;  // offset, length
  std::uint64_t bytes_ = 0;
  Disk disk_;
};

struct Judged {
  double assumed = 0, factor = 0;
  double remembered = 0;    // the factor, right after another mount
  double seconds = 0;       // of the device's time, from the first cleaning until the cost was known
  double longest_wait = 0;  // s, of a write
  double mean_wait = 0;
  std::string explanation;
  std::optional<format::WritingCosts> memory;  // of a former mount, on another device
};

// Overwrites here and there with the device 85 % full.
void judge(bool says_it_rotates, TimedDevice::Model model, Judged& judged) {
  ManualClock clock;
  SeededRandom random{5};
  io::MemDevice memory(kBytes);
  TimedDevice device(memory, clock, says_it_rotates, std::move(model));
  ASSERT_TRUE(make_image(memory, {.segment_blocks = 256}).ok());
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const auto file = fixture.make("/f", 0100644);
  ASSERT_TRUE(file.ok());
  if (judged.memory) {
    fixture.store().superblocks().set_costs(*judged.memory);
    ASSERT_TRUE(fixture.unmount().ok());
    ASSERT_TRUE(fixture.mount().ok());
  }
  const device::WriteCost& cost = fixture.store().io().write_cost();
  judged.assumed = cost.factor();
  const std::uint64_t room = fixture.available_bytes().value() / 100 * 88 / kPiece;
  for (std::uint64_t i = 0; i < room; ++i) ASSERT_TRUE(fixture.write(file->ino, i * kPiece, pattern_bytes(1, 0, kPiece)).ok());
  std::uint64_t began = 0, known = 0, waited = 0, writes = 0, longest = 0;
  for (std::uint64_t i = 0; i < room; ++i) {
    const std::uint64_t before = clock.monotonic_ns();
    ASSERT_TRUE(fixture.write(file->ino, random.next() % room * kPiece, pattern_bytes(1, 0, kPiece)).ok());
    if (i % 64 == 0) {
      ASSERT_TRUE(fixture.seal().ok());
    }
    const std::uint64_t took = clock.monotonic_ns() - before;
    if (!began && fixture.fs().status().segments_cleaned) began = before;
    if (!began) continue;
    if (!known && cost.knows_scattered() && cost.knows_in_row()) known = clock.monotonic_ns();
    waited += took;
    longest = std::max(longest, took);
    ++writes;
  }
  ASSERT_GT(began, 0U) << "nothing was cleaned";
  ASSERT_GT(known, 0U) << "it is still assumed";
  judged.factor = cost.factor();
  judged.seconds = static_cast<double>(known - began) / kSecond;
  judged.longest_wait = static_cast<double>(longest) / kSecond;
  judged.mean_wait = static_cast<double>(waited) / kSecond / static_cast<double>(writes);
  judged.explanation = fixture.fs().status().strategy_explanation;
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(fixture.mount().ok());
  judged.remembered = fixture.store().io().write_cost().factor();
}

// A machine that has much else to do: choosing victims takes it seconds.
class SlowChoice : public Random {
 public:
  explicit SlowChoice(ManualClock& clock) : clock_(clock) {}
  std::uint64_t next() override {
    clock_.advance(10'000'000);
    return random_.next();
  }

 private:
  ManualClock& clock_;
  SeededRandom random_{5};
};

TEST(Judging, what_the_host_takes_is_not_taken_for_the_devices_time) {
  ManualClock clock;
  SlowChoice choice(clock);
  SeededRandom random{5};
  io::MemDevice memory(64u << 20);
  TimedDevice device(memory, clock, false, virtual_disk);
  ASSERT_TRUE(make_image(memory, {.segment_blocks = 64}).ok());
  fs::Options options = test_options(clock, choice);
  options.victims = "greedy+d-choices";
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  const auto file = fixture.make("/f", 0100644);
  ASSERT_TRUE(file.ok());
  const std::uint64_t room = fixture.available_bytes().value() / 100 * 88 / kPiece;
  for (std::uint64_t i = 0; i < room; ++i) ASSERT_TRUE(fixture.write(file->ino, i * kPiece, pattern_bytes(1, 0, kPiece)).ok());
  for (std::uint64_t i = 0; i < room; ++i)
    ASSERT_TRUE(fixture.write(file->ino, random.next() % room * kPiece, pattern_bytes(1, 0, kPiece)).ok());
  const format::WritingCosts costs = fixture.store().superblocks().costs();
  EXPECT_GT(costs.copied + costs.plugged, 0U);
  EXPECT_LT(costs.copied, 2'000'000U);
  EXPECT_LT(costs.plugged, 2'000'000U);
}

TEST(Judging, a_virtual_disk_that_says_that_it_rotates) {
  Judged judged;
  judge(true, virtual_disk, judged);
  EXPECT_GT(judged.assumed, 50);
  EXPECT_LT(judged.factor, 15);
  EXPECT_LT(judged.seconds, 5);
  EXPECT_LT(judged.longest_wait, 2);
  EXPECT_LT(judged.mean_wait, 0.0005) << judged.explanation;
  EXPECT_NEAR(judged.remembered, judged.factor, 0.15 * judged.factor);
}

TEST(Judging, a_virtual_disk_on_a_slow_host_that_says_that_it_rotates) {
  Judged judged;
  judge(true, virtual_disk_of_a_slow_host, judged);
  EXPECT_LT(judged.factor, 15);
  EXPECT_LT(judged.seconds, 10);
  EXPECT_LT(judged.longest_wait, 5);
  EXPECT_LT(judged.mean_wait, 0.002);
}

TEST(Judging, a_cheap_card_that_says_nothing) {
  Judged judged;
  judge(false, Card(), judged);
  EXPECT_LT(judged.assumed, 10);
  EXPECT_GT(judged.factor, 30);
  EXPECT_LT(judged.seconds, 15);
  EXPECT_LT(judged.longest_wait, 8);
  EXPECT_TRUE(judged.explanation.starts_with("copying")) << judged.explanation;
}

TEST(Judging, a_disk_that_does_not_say_that_it_rotates) {
  Judged judged;
  judge(false, Disk(), judged);
  EXPECT_GT(judged.factor, 15);
  EXPECT_LT(judged.longest_wait, 5);
  EXPECT_TRUE(judged.explanation.starts_with("copying")) << judged.explanation;
}

TEST(Judging, a_disk_with_a_cache) {
  Judged judged;
  judge(false, DiskWithCache(), judged);
  EXPECT_TRUE(judged.explanation.starts_with("copying")) << judged.explanation << ", " << judged.factor;
  EXPECT_LT(judged.mean_wait, 0.015);
  EXPECT_LT(judged.longest_wait, 4) << "a trial has to see what its cache hides";
}

TEST(Judging, a_card_of_which_it_is_said_that_it_writes_anywhere) {
  Judged judged;
  judged.memory = format::WritingCosts{1'000'000, 10'000, 300'000, 10'000, 270'000, 280'000};
  judge(false, Card(), judged);
  EXPECT_LT(judged.assumed, 2);
  EXPECT_TRUE(judged.explanation.starts_with("copying")) << judged.explanation;
  EXPECT_LT(judged.mean_wait, 0.020);
}

TEST(Judging, a_virtual_disk_of_which_it_is_said_that_it_writes_nowhere_but_in_a_row) {
  Judged judged;
  judged.memory = format::WritingCosts{300'000, 900'000'000, 30'000, 900'000'000, 30'000, 90'000'000};
  judge(true, virtual_disk, judged);
  EXPECT_GT(judged.assumed, 1000);
  EXPECT_LT(judged.factor, 15);
}

TEST(Judging, a_disk_that_does) {
  Judged judged;
  judge(true, Disk(), judged);
  EXPECT_GT(judged.factor, 15);
  EXPECT_LT(judged.longest_wait, 5);
}

}  // namespace
}  // namespace varve::test
