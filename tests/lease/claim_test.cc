// Newcomers and holders that meet in every order: never two of them may write at one time.
#include "lease/tenure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "io/mem_device.h"
#include "support/settings.h"

namespace varve::lease {
namespace {

constexpr Times kTimes{.promise_ns = 10'000 * kMillisecond,
                       .margin_ns = 2'000 * kMillisecond,
                       .settle_ns = 1'000 * kMillisecond,
                       .look_ns = 2'000 * kMillisecond};

class Program;

// What all programs share: the device, the time, and what happens between two moments of one of them.
struct World {
  io::MemDevice device{1 << 20};
  std::vector<std::unique_ptr<Program>> programs;
  std::uint64_t now = 1'000'000'000'000;
  std::function<void()> before_io = [] {};

  Program& add(std::uint64_t seed, bool may_be_shared, bool takes_over = false);
  std::size_t writers() const;
  // Runs whatever is due for so long, and demands that there is one writer at most.
  void run(std::uint64_t ns);
};

// The device as one program has it: things happen before what it reads and writes.
class Door : public io::BlockDevice {
 public:
  explicit Door(World& world) : world_(world) {}
  bool writes_follow_at_once = false;
  std::uint64_t cut_off_until = 0;  // a partition: nothing comes back, though what was written may have arrived
  const io::Geometry& geometry() const override { return world_.device.geometry(); }
  const std::string& name() const override { return world_.device.name(); }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override { world_.device.submit(reactor, request); }
  int execute(io::IoRequest& request) override {
    if (request.kind == io::IoKind::read || !writes_follow_at_once) world_.before_io();
    if (world_.now >= cut_off_until) return world_.device.execute(request);
    if (request.kind == io::IoKind::write && cut_off_until % 2) (void)world_.device.execute(request);
    return EIO;
  }

 private:
  World& world_;
};

// One program that wants the device: it claims, then keeps the rules of a holder.
class Program {
 public:
  Program(World& world, std::uint64_t seed, bool may_be_shared, bool takes_over)
      : world_(world), door_(world), random_(seed), claim_(area_, self_of(seed, may_be_shared, takes_over), kTimes,
               Clock::system(), random_) {}

  enum class State { claims, holds, refused, released };
  State state() const { return state_; }
  bool is_due() const { return !running_ && (state_ == State::claims || state_ == State::holds) && next_ns_ <= world_.now; }
  bool may_write() const { return state_ == State::holds && tenure_->may_write(); }
  const std::string& why() const { return why_; }

  void run() {
    running_ = true;
    if (state_ == State::claims) claim();
    else look();
    running_ = false;
  }
  void release() {
    state_ = State::released;
    door_.writes_follow_at_once = true;  // once it has looked at the time: nothing can help it from there on
    EXPECT_TRUE(tenure_->give_up().ok() || door_.cut_off_until > world_.now);
  }
  void die() { state_ = State::refused; }
  void cut_off(std::uint64_t ns) { door_.cut_off_until = world_.now + ns; }

 private:
  static Self self_of(std::uint64_t seed, bool may_be_shared, bool takes_over) {
    Self self;  // each in a container of its own: nobody can see from outside whether it lives
    self.process.boot.fill(1);
    self.process.pid_namespace = seed;
    self.process.pid = static_cast<std::uint32_t>(seed);
    self.may_be_shared = may_be_shared;
    self.takes_over = takes_over;
    return self;
  }

  void claim() {
    const std::uint64_t began = world_.now;
    const auto next = claim_.step([this] { return world_.now; });
    if (!next.ok()) {
      EXPECT_TRUE(next.fails_with(Errc::in_use) || door_.cut_off_until > began);
      why_ = next.error().message();
      state_ = State::refused;
      return;
    }
    next_ns_ = world_.now + (*next ? **next : 0);
    if (*next) return;
    state_ = State::holds;
    tenure_.emplace(area_, kTimes, claim_.lease(), claim_.first_block(), began, [this] { return world_.now; });
  }

  void look() {
    next_ns_ = world_.now + kTimes.look_ns;
    const std::uint64_t began = world_.now;
    EXPECT_TRUE(tenure_->look() || door_.cut_off_until > began);
    if (!tenure_->why_lost().empty()) state_ = State::refused;
  }

  World& world_;
  Door door_;
  Area area_{door_};
  SeededRandom random_;
  Claim claim_;
  State state_ = State::claims;
  bool running_ = false;
  std::optional<Tenure> tenure_;
  std::uint64_t next_ns_ = 0;
  std::string why_;
};

Program& World::add(std::uint64_t seed, bool may_be_shared, bool takes_over) {
  return *programs.emplace_back(std::make_unique<Program>(*this, seed, may_be_shared, takes_over));
}

std::size_t World::writers() const {
  return static_cast<std::size_t>(std::ranges::count_if(programs, [](const auto& program) { return program->may_write(); }));
}

void World::run(std::uint64_t ns) {
  for (const std::uint64_t end = now + ns; now < end; now += 50 * kMillisecond) {
    for (auto& program : programs)
      if (program->is_due()) program->run();
    ASSERT_LE(writers(), 1U);
  }
}

TEST(Claim, AFreeDeviceIsTakenAtOnce) {
  World world;
  Program& one = world.add(1, false);
  one.run();
  one.run();
  EXPECT_EQ(one.state(), Program::State::holds);
}

TEST(Claim, AHolderThatLivesIsFoundByAsking) {
  World world;
  Program& one = world.add(1, true);
  world.run(5'000 * kMillisecond);
  ASSERT_EQ(one.state(), Program::State::holds);
  Program& two = world.add(2, true);
  world.run(60'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::refused);
  EXPECT_NE(two.why().find("process 1 "), std::string::npos) << two.why();
  EXPECT_EQ(one.state(), Program::State::holds);
}

// What stands on a device can be anything.
TEST(Claim, NoPromiseIsBelievedToLastForWeeks) {
  World world;
  format::Lease lease;
  lease.holder = 77;
  lease.promise_ms = ~std::uint32_t{0};
  lease.process.host = "elsewhere";
  ASSERT_TRUE(Area(world.device).write(lease).ok());
  Program& one = world.add(1, true);
  world.run(kLongestPromiseNs);
  EXPECT_EQ(one.state(), Program::State::claims);
  world.run(10'000 * kMillisecond);
  EXPECT_EQ(one.state(), Program::State::holds);
}

TEST(Claim, AHolderThatHasGoneIsReplacedWhenItsPromiseIsOver) {
  World world;
  world.add(1, true);
  world.run(5'000 * kMillisecond);
  world.programs[0]->die();
  Program& two = world.add(2, true);
  world.run(kTimes.promise_ns);
  EXPECT_EQ(two.state(), Program::State::claims);
  world.run(10'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::holds);
}

TEST(Claim, WhatWasReleasedNeedsNoPatience) {
  World world;
  world.add(1, false);
  world.run(1'000 * kMillisecond);
  world.programs[0]->release();
  Program& two = world.add(2, false);
  two.run();
  two.run();
  EXPECT_EQ(two.state(), Program::State::holds);
}

TEST(Claim, NoTraceOfAskingIsLeftBehind) {
  World world;
  world.add(1, true);
  world.run(5'000 * kMillisecond);
  world.add(2, true);
  world.run(60'000 * kMillisecond);
  Area area(world.device);
  EXPECT_FALSE(area.read()->challenge);
}

TEST(Claim, ADeadNewcomersChallengeDoesNotLast) {
  World world;
  Program& dead = world.add(1, true);
  dead.run();  // leaves a challenge
  dead.die();
  Program& two = world.add(2, false);
  world.run(20'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::holds);
  EXPECT_FALSE(Area(world.device).read()->challenge);
}

TEST(Claim, ATakeOverEndsAHolderThatLives) {
  World world;
  Program& one = world.add(1, true);
  world.run(5'000 * kMillisecond);
  ASSERT_EQ(one.state(), Program::State::holds);
  Program& two = world.add(2, true, true);
  world.run(4'000 * kMillisecond);
  EXPECT_EQ(one.state(), Program::State::refused) << "at its next look";
  EXPECT_EQ(two.state(), Program::State::claims) << "it cannot know that";
  world.run(20'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::holds);
}

TEST(Claim, ATakeOverEndsAHolderThatIsCutOff) {
  World world;
  Program& one = world.add(1, true);
  world.run(5'000 * kMillisecond);
  one.cut_off(60'000 * kMillisecond);
  Program& two = world.add(2, true, true);
  world.run(20'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::holds);
  EXPECT_FALSE(one.may_write()) << "its promise is over";
  world.run(60'000 * kMillisecond);
  EXPECT_EQ(one.state(), Program::State::refused) << "and it hears why";
  EXPECT_EQ(two.state(), Program::State::holds);
}

TEST(Claim, ADeadDemandIsNoMoreThanAChallenge) {
  World world;
  Program& dead = world.add(1, true, true);
  dead.run();  // leaves a demand
  dead.die();
  Program& two = world.add(2, true);
  world.run(30'000 * kMillisecond);
  EXPECT_EQ(two.state(), Program::State::holds);
}

// Times of arrival, delays within and between steps, pauses of whole programs, deaths and releases, all at random.
class Play {
 public:
  explicit Play(std::uint64_t seed) : seed_(seed), random_(seed), most_(2 + upto(3)) {
    world_.before_io = [this] { between(); };
  }

  void run() {
    for (unsigned step = 0; step < 300 && !testing::Test::HasFatalFailure(); ++step) {
      pass(upto(8) == 0 ? 15'000 * kMillisecond : 400 * kMillisecond);
      if (world_.programs.size() < most_ && upto(10) == 0)
        world_.add(seed_ * 16 + world_.programs.size() + 1, upto(2) == 0, upto(4) == 0);
      run_some();
      if (upto(40) == 0) cut_one_off();
      if (upto(60) == 0) end_one();
    }
  }
  std::size_t held() const { return held_; }

 private:
  std::uint64_t upto(std::uint64_t n) { return random_.next() % n; }
  void pass(std::uint64_t most) { world_.now += upto(most); }
  // While a program is about to read or write, others may do whatever they are due for, and time passes: mostly little.
  void between() {
    if (depth_ == 2) return;
    ++depth_;
    if (upto(3) == 0) pass(upto(10) ? 450 * kMillisecond : 20'000 * kMillisecond);
    run_some();
    --depth_;
  }
  void run_some() {
    for (std::size_t i = 0; i < world_.programs.size(); ++i) {
      Program& program = *world_.programs[i];
      if (!program.is_due() || upto(3) == 0) continue;
      const bool held = program.state() == Program::State::holds;
      program.run();
      held_ += !held && program.state() == Program::State::holds;
      ASSERT_LE(world_.writers(), 1U) << "VARVE_SEED=" << seed_;
    }
  }
  void end_one() {
    if (world_.programs.empty()) return;
    Program& one = *world_.programs[upto(world_.programs.size())];
    if (one.state() == Program::State::holds && upto(2)) one.release();
    else one.die();
  }

  void cut_one_off() {
    if (!world_.programs.empty()) world_.programs[upto(world_.programs.size())]->cut_off(upto(30'000 * kMillisecond));
  }

  const std::uint64_t seed_;
  SeededRandom random_;
  World world_;
  const std::size_t most_;
  unsigned depth_ = 0;
  std::size_t held_ = 0;
};

TEST(Claim, ThousandsOfMeetingsNeverGiveTwoWriters) {
  std::size_t held = 0;
  for (std::uint64_t i = 0; i < 5000 && !testing::Test::HasFailure(); ++i) {
    Play play(test::first_seed() + i);
    play.run();
    held += play.held();
  }
  EXPECT_GT(held, 5000U);  // the device is taken, and taken again
}

}  // namespace
}  // namespace varve::lease
