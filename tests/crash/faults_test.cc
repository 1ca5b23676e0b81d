// Writes and flushes that fail while a script runs, each followed by crashes: nothing may be acknowledged as durable
// that is not.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "device/faults.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"

namespace varve::test {
namespace {

constexpr const char* kStart = "create /f 0644; write /f 0 100000 1; mkdir /d 0755";
constexpr const char* kSteps =
    "write /f 0 20000 2; fsync /f; create /g 0644; write /g 0 300000 3; seal; create /d/h 0644; fsync /g;"
    "rename /d/h /h move; write /f 50000 4096 4; checkpoint; unlink /g; fsync /; write /h 0 70000 5; seal;"
    "write /f 0 4096 6; fsync /f; checkpoint; create /i 0644; fsync /i";

struct Outcome {
  bool happened = false;  // the script was long enough for this fault
  bool synced_later = false;
  std::string failure;
};

// Crashes at the end, or `everywhere`: a later flush makes up for one that was missing.
Outcome with_fault(const Fault& fault, std::uint64_t seed, bool discard = false, const std::string& steps = kSteps,
                   bool everywhere = false) {
  CrashSetup setup;
  setup.seed = seed;
  setup.discard = discard;
  const Script start = script(kStart);
  Recording recording(setup, prepare(setup, start), script(steps), {fault});
  Outcome outcome;
  outcome.failure = recording.failed();
  outcome.happened = recording.stopped_by_fault();
  outcome.synced_later = recording.synced_after_fault();
  std::vector<Cut> cuts;
  for (const CutPolicy policy : {CutPolicy::prefix, CutPolicy::lost, CutPolicy::subset, CutPolicy::scramble})
    cuts.push_back({recording.device().position(), policy, seed});
  if (everywhere) cuts = recording.cuts({.seeds = 1, .seed = seed});
  for (const Cut& cut : cuts) {
    if (outcome.failure.empty()) outcome.failure = verify(recording, cut);
    if (outcome.failure.empty()) continue;
    outcome.failure = explain(recording, start, cut, outcome.failure);
    break;
  }
  return outcome;
}

// The n-th write fails, once, for every n: the engine finds another way or stops, but does not lie.
TEST(Hazards, H14_a_failed_write_is_not_acknowledged) {
  for (std::uint64_t n = 1; n < 400; ++n) {
    Fault fault;
    fault.kind = io::IoKind::write;
    fault.nth = n;
    const Outcome outcome = with_fault(fault, n);
    ASSERT_TRUE(good(outcome.failure)) << "write " << n << " failed";
    if (!outcome.happened && n > 150) break;
  }
}

TEST(Hazards, H14_writes_that_fail_from_some_point_on) {
  for (std::uint64_t n = 1; n < 100; n += 3) {
    Fault fault;
    fault.kind = io::IoKind::write;
    fault.nth = n;
    fault.times = Fault::kForEver;
    const Outcome outcome = with_fault(fault, n);
    ASSERT_TRUE(good(outcome.failure)) << "writes from " << n << " on failed";
  }
}

TEST(Hazards, H14_half_a_write_is_none) {
  for (std::uint64_t n = 1; n < 200; ++n) {
    Fault fault;
    fault.action = Fault::Action::partial;
    fault.kind = io::IoKind::write;
    fault.nth = n;
    const Outcome outcome = with_fault(fault, n);
    ASSERT_TRUE(good(outcome.failure)) << "write " << n << " was cut short";
    if (!outcome.happened && n > 100) break;
  }
}

// (Elsewhere a sync may succeed after a fault, if everything acknowledged is durable already; the crashes prove it.)
// After a failed flush nobody knows what is on the medium: no later sync may succeed (fsyncgate).
TEST(Hazards, H15_a_failed_flush_is_never_repeated) {
  for (std::uint64_t n = 1; n < 60; ++n) {
    Fault fault;
    fault.kind = io::IoKind::flush;
    fault.nth = n;
    const Outcome outcome = with_fault(fault, n, false, kSteps, true);
    ASSERT_TRUE(good(outcome.failure)) << "flush " << n << " failed";
    EXPECT_FALSE(outcome.happened && outcome.synced_later) << "a sync succeeded after flush " << n << " had failed";
    if (!outcome.happened && n > 30) break;
  }
}

TEST(Faults, a_device_that_vanishes_takes_nothing_that_was_synced) {
  for (std::uint64_t n = 1; n < 150; n += 2) {
    Fault fault;
    fault.action = Fault::Action::vanish;
    fault.nth = n;
    const Outcome outcome = with_fault(fault, n);
    ASSERT_TRUE(good(outcome.failure)) << "gone at request " << n;
  }
}

// An image whose host has no room left, a request that ran into its timeout: other numbers, the same answer.
TEST(Faults, no_room_on_the_host_and_timeouts_are_failed_writes) {
  for (const int error : {ENOSPC, ETIMEDOUT}) {
    for (const io::IoKind kind : {io::IoKind::write, io::IoKind::flush}) {
      for (const std::uint64_t times : {std::uint64_t{1}, Fault::kForEver}) {
        for (std::uint64_t n = 1; n < 100; ++n) {
          Fault fault;
          fault.kind = kind;
          fault.nth = n;
          fault.times = times;
          fault.error = error;
          const Outcome outcome = with_fault(fault, n);
          ASSERT_TRUE(good(outcome.failure)) << "request " << n << ", error " << error;
          if (!outcome.happened && n > 40) break;
        }
      }
    }
  }
}

// The same where such writes are held: they are tried again until there is room, and the script never hears of it. For each write, a few
// tries in vain, of which some have written a part, and crashes everywhere, while it is held too.
TEST(Hazards, H60_a_write_that_is_held_for_room_is_a_slow_one) {
  CrashSetup setup;
  setup.holds = true;
  const Script start = script(kStart);
  std::uint64_t held = 0;
  for (std::uint64_t n = 1; n < 400; ++n) {
    Fault fault;
    fault.action = n % 3 == 0 ? Fault::Action::partial : Fault::Action::fail;
    fault.kind = io::IoKind::write;
    fault.nth = n;
    fault.times = 1 + n % 4;
    fault.error = n % 5 == 0 ? EDQUOT : ENOSPC;
    setup.seed = n;
    setup.completion_seed = n % 2 * n;
    Recording recording(setup, prepare(setup, start), script(kSteps), {fault});
    ASSERT_TRUE(good(recording.failed())) << "write " << n;
    ASSERT_FALSE(recording.stopped_by_fault()) << "write " << n;
    if (recording.times_held() == 0 && n > 40) break;
    held += recording.times_held();
    for (const Cut& cut : recording.cuts({.max_positions = 12, .seeds = 1, .seed = n})) {
      const std::string failure = verify(recording, cut, {.check = n % 16 == 0});
      ASSERT_TRUE(failure.empty()) << explain(recording, start, cut, failure);
    }
  }
  EXPECT_GT(held, 10U);
}

constexpr const char* kReadingSteps =
    "remount; write /f 5000 100 2; fsync /f; remount; create /g 0644; truncate /f 70001; fsync /g; remount; write /f 90001 10 3;"
    "rename /g /d/g move; unlink /f; checkpoint; remount; rmdir /d; rename /d/g /h move; rmdir /d; fsync /";

// The n-th read fails: at a mount, in an operation, in a checkpoint. An error there, and nothing else is hurt. Most reads are repeated, so
// that an error that passes is none.
TEST(Faults, a_failed_read_costs_nothing_that_was_synced) {
  for (const std::uint64_t times : {1, 6}) {
    unsigned hit = 0;
    for (std::uint64_t n = 1; n < 300; ++n) {
      Fault fault;
      fault.kind = io::IoKind::read;
      fault.nth = n;
      fault.times = times;
      const Outcome outcome = with_fault(fault, n, false, kReadingSteps);
      ASSERT_TRUE(good(outcome.failure)) << "read " << n << " failed";
      hit += outcome.happened;
      if (!outcome.happened && n > 150) break;
    }
    EXPECT_GT(hit, times > 1 ? 10U : 0U);
  }
}

// A discard is advice: if the device does not take it, nobody need know.
TEST(Faults, a_failed_discard_is_no_failure) {
  std::string steps;
  for (int i = 0; i < 8; ++i) steps += fmt::format("write /f 0 400000 {}; fsync /f; checkpoint; work; ", 10 + i);
  for (const std::uint64_t times : {std::uint64_t{1}, Fault::kForEver}) {
    for (std::uint64_t n = 1; n < 12; ++n) {
      Fault fault;
      fault.kind = io::IoKind::discard;
      fault.nth = n;
      fault.times = times;
      const Outcome outcome = with_fault(fault, n, true, steps);
      ASSERT_TRUE(good(outcome.failure)) << "discard " << n << " failed";
      EXPECT_FALSE(outcome.happened) << "an operation failed because discard " << n << " did";
    }
  }
}

// Writes that the device lost or put elsewhere, and said nothing, for each n. Nobody can promise what was in them, but
// what is shown is a state that once was, or an error, or a refusal to mount.
TEST(Faults, lost_and_misdirected_writes_are_never_believed) {
  CrashSetup setup;
  const Script start = script(kStart);
  for (const Fault::Action action : {Fault::Action::lose, Fault::Action::misdirect}) {
    for (std::uint64_t n = 1; n < 120; ++n) {
      Fault fault;
      fault.action = action;
      fault.kind = io::IoKind::write;
      fault.nth = n;
      fault.shift_blocks = n % 2 ? 7 : -3;
      setup.seed = n;
      Recording recording(setup, prepare(setup, start), script(kSteps), {fault});
      if (!recording.failed().empty()) continue;  // noticed at once
      const auto image = recording.device().image_now();
      ManualClock clock;
      clock.set_elapsed(recording.clock_after() + 1'000'000'000);
      SeededRandom random(n);
      FsFixture fixture(*image, test_options(clock, random));
      if (!fixture.mount().ok()) continue;
      const Snapshot found = snapshot_of(fixture);
      if (!found.error.empty()) continue;
      std::size_t state = 0;
      const std::pair<std::size_t, std::size_t> any{0, recording.states().size() - 1};
      EXPECT_TRUE(good(recording.find(found, any, state))) << "write " << n << (action == Fault::Action::lose ? " lost" : " misdirected");
    }
  }
}

}  // namespace
}  // namespace varve::test
