// What a device does for the program that uses it: the lease is there while it writes, and nothing is written when it is not.
#include "lease/leased_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/buffer.h"
#include "format/make.h"
#include "io/reactor.h"
#include "io/trace_device.h"
#include "leased_device_fixture.h"
#include "support/fault_device.h"
#include "support/waiting.h"

namespace varve::lease {
namespace {

// Counts how often it is read, from any thread.
class CountingDevice : public io::BlockDevice {
 public:
  CountingDevice(io::BlockDevice& below, std::atomic<std::uint64_t>& reads) : below_(below), reads_(reads) {}
  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    reads_ += request.kind == io::IoKind::read;
    below_.submit(reactor, request);
  }
  int execute(io::IoRequest& request) override {
    reads_ += request.kind == io::IoKind::read;
    return below_.execute(request);
  }

 private:
  io::BlockDevice& below_;
  std::atomic<std::uint64_t>& reads_;
};

// Something happens between its next answer to a read and the moment at which that comes.
class LateDevice : public io::TraceDevice {
 public:
  using TraceDevice::TraceDevice;
  int execute(io::IoRequest& request) override {
    const int error = TraceDevice::execute(request);
    if (request.kind == io::IoKind::read && meanwhile) std::exchange(meanwhile, nullptr)();
    return error;
  }

  std::function<void()> meanwhile;
};

TEST_F(LeasedDeviceTest, IsHeldUntilItIsReleased) {
  auto device = hold();
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(Area(memory_).read()->lease);
  EXPECT_TRUE(write(**device, 100).ok());
  EXPECT_TRUE((*device)->release().ok());
  EXPECT_TRUE(Area(memory_).read()->is_blank);
  EXPECT_FALSE(write(**device, 100).ok());
}

TEST_F(LeasedDeviceTest, ASecondUseIsRefusedByName) {
  const auto first = hold();
  const auto second = hold();
  ASSERT_TRUE(second.fails_with(Errc::in_use));
  EXPECT_NE(second.error().message().find("(test, here)"), std::string::npos) << second.error().message();
  EXPECT_TRUE(write(**first, 100).ok());
}

TEST_F(LeasedDeviceTest, AnotherFilesystemsDeviceIsNotTouched) {
  AlignedBuffer other(4 * kBlockSize), now(4 * kBlockSize);
  std::memset(other.data(), 0x5A, other.size());
  memory_.poke(0, other.span());
  { const auto device = hold(); }
  memory_.peek(0, now.span());
  EXPECT_EQ(std::memcmp(now.data(), other.data(), now.size()), 0);
}

TEST_F(LeasedDeviceTest, WipingTheStartKeepsTheLease) {
  const auto device = hold();
  const auto zeros = AlignedBuffer::zeroed(1 << 20);
  EXPECT_TRUE((*device)->write(0, zeros.span()).ok());
  const auto found = Area(memory_).read();
  EXPECT_TRUE(found->lease);
  EXPECT_FALSE(found->has_superblock);
  EXPECT_TRUE((*device)->discard(0, 1 << 20).ok());
  EXPECT_TRUE(Area(memory_).read()->lease);
  EXPECT_TRUE(write(**device, 100).ok());
}

TEST_F(LeasedDeviceTest, IsToldWhenItIsLost) {
  auto device = hold({.promise_ns = 10'000 * kMillisecond, .look_ns = 1 * kMillisecond});
  Loss loss(**device);
  take_over();
  const std::string why = loss.why();
  ASSERT_FALSE(why.empty());
  EXPECT_NE(why.find("elsewhere"), std::string::npos) << why;
  EXPECT_EQ((*device)->refusal(), why);
  EXPECT_FALSE(write(**device, 100).ok());
  EXPECT_FALSE((*device)->flush().fails_with(Errc::in_use));
  EXPECT_TRUE((*device)->release().ok());
  EXPECT_EQ(Area(memory_).read()->lease->holder, 77U);
}

TEST_F(LeasedDeviceTest, ASuperblockIsWrittenOnlyAfterALook) {
  const auto device = hold({.look_ns = 1'000'000 * kMillisecond});
  take_over();
  AlignedBuffer block(kBlockSize);
  memory_.peek(0, block.span());
  EXPECT_FALSE((*device)->write(0, block.span()).ok());
  EXPECT_NE((*device)->refusal().find("elsewhere"), std::string::npos);
}

TEST_F(LeasedDeviceTest, NothingIsWrittenAfterAPauseWithoutALook) {
  const auto device = hold({.promise_ns = 1, .look_ns = 1'000'000 * kMillisecond});
  take_over();
  EXPECT_FALSE(write(**device, 100).ok());
}

void begin(Keeper& keeper, io::BlockDevice& device, const Times& times) {
  Self self;
  self.process = this_process("test", "here");
  Claim claim(Area(device), self, times, Clock::system(), Random::system());
  for (auto step = claim.step(boot_time_ns); *step; step = claim.step(boot_time_ns)) ASSERT_TRUE(step.ok());
  ASSERT_TRUE(keeper.start(claim, boot_time_ns()).ok());
}

// What has waited for a thread since before a pause asks for a look: no other request may come.
TEST_F(LeasedDeviceTest, ADiskThatIsLeftAloneIsLookedAtWhenItIsAskedFor) {
  const Times times{.promise_ns = 500 * kMillisecond, .look_ns = 1'000'000 * kMillisecond};
  Keeper keeper{Area(memory_), times};
  begin(keeper, memory_, times);
  keeper.let_rest();
  test::wait_until([&] { return keeper.may_send(0) == io::WriteGuard::Verdict::not_now; });
  test::wait_until([&] {
    keeper.look_soon();
    return keeper.may_send(0) == io::WriteGuard::Verdict::yes;
  });
}

// It could not stop otherwise. Another device is looked at meanwhile, so that time passes.
TEST_F(LeasedDeviceTest, ADiskThatNobodyUsesIsLeftAlone) {
  const auto other = memory_.snapshot();
  std::atomic<std::uint64_t> reads{0}, reads_of_other{0};
  CountingDevice disk(memory_, reads);
  const Times times{.look_ns = 1 * kMillisecond};
  const auto flash = LeasedDevice::hold(std::make_unique<CountingDevice>(*other, reads_of_other), {"test", "there"}, times);
  const auto let_time_pass = [&] {
    const std::uint64_t until = reads_of_other + 20;
    while (reads_of_other < until) std::this_thread::yield();
  };
  Keeper keeper{Area(disk), times};
  begin(keeper, disk, times);
  const std::uint64_t held = reads;
  while (reads == held) std::this_thread::yield();
  keeper.let_rest();
  let_time_pass();
  const std::uint64_t before = reads;
  let_time_pass();
  EXPECT_EQ(reads, before);
  while (reads == before) keeper.note_use();  // it is in use again
  take_over();
  EXPECT_FALSE(keeper.may_write(true));
}

// As on a disk that was left to rest, and takes longer to start than the lease promises.
class LateLookTest : public LeasedDeviceTest {
 protected:
  LateLookTest() {
    auto late = std::make_unique<LateDevice>(memory_);
    late_ = late.get();
    const Times times{.promise_ns = kPromiseNs, .look_ns = 1'000'000 * kMillisecond};
    device_ = LeasedDevice::hold(std::move(late), {"test", "here"}, times).value();
    outlast_promise();
  }
  static void outlast_promise() {
    const std::uint64_t began = boot_time_ns();
    test::wait_until([&] { return boot_time_ns() - began > kPromiseNs; });
  }

  static constexpr std::uint64_t kPromiseNs = 500 * kMillisecond;
  LateDevice* late_ = nullptr;
  std::unique_ptr<LeasedDevice> device_;
};

TEST_F(LateLookTest, IsMadeAgain) {
  late_->meanwhile = outlast_promise;
  const auto reactor = io::Reactor::make();
  EXPECT_EQ(error_of_write(*device_, *reactor), 0);
  EXPECT_EQ(device_->refusal(), "");
}

// What it saw was true when it began, and another holder may have come since then.
TEST_F(LateLookTest, IsNotBelieved) {
  late_->meanwhile = [this] {
    outlast_promise();
    take_over();
  };
  EXPECT_FALSE(write(*device_, 100).ok());
  EXPECT_NE(device_->refusal().find("elsewhere"), std::string::npos) << device_->refusal();
}

TEST_F(LeasedDeviceTest, ADeviceThatIsAlwaysLateHasFailed) {
  const auto device = hold({.promise_ns = 1, .look_ns = 1'000'000 * kMillisecond});
  const auto reactor = io::Reactor::make();
  EXPECT_EQ(error_of_write(**device, *reactor), EIO);
}

// The holder answers a newcomer, and the device refuses that.
class FailedAnswerTest : public LeasedDeviceTest {
 protected:
  static constexpr std::uint64_t kNonce = 5;

  FailedAnswerTest() {
    const Times times{.promise_ns = 10'000 * kMillisecond, .look_ns = 1 * kMillisecond};
    device_ = LeasedDevice::hold(std::make_unique<io::TraceDevice>(failing_), {"test", "here"}, times).value();
  }
  void challenge_and_fail(int error) {
    failing_.add({.kind = io::IoKind::write, .touches_block = format::kAnswerBlock, .error = error});
    EXPECT_TRUE(Area(memory_).write(format::Challenge{kNonce, {}, false, {}}).ok());
  }
  static int outcome_after(io::IoRequest& request, io::BlockDevice& device, const std::function<void()>& meanwhile) {
    const auto reactor = io::Reactor::make();
    int error = -1;
    request.done = [&](io::IoRequest& done) { error = done.error; };
    device.submit(*reactor, request);
    meanwhile();
    while (error < 0) reactor->wait(-1);
    return error;
  }

  test::FaultDevice failing_{memory_};
  std::unique_ptr<LeasedDevice> device_;
};

// The kernel tells of a lost write once. If the answer has heard of the log's, the next flush does not.
TEST_F(FailedAnswerTest, NoFlushIsBelievedAnyMore) {
  EXPECT_TRUE(write(*device_, 100).ok());
  EXPECT_TRUE(device_->flush().ok());
  Loss loss(*device_);
  challenge_and_fail(EIO);
  const std::string why = loss.why();
  EXPECT_NE(why.find("cannot write the lease"), std::string::npos) << why;
  EXPECT_TRUE(device_->flush().fails_with(Errc::io));
  EXPECT_TRUE(write(*device_, 100).fails_with(Errc::io)) << "a failed disk, not one in use";
}

TEST_F(FailedAnswerTest, NorOneThatWasOnItsWay) {
  Loss loss(*device_);
  io::IoRequest flush;
  flush.kind = io::IoKind::flush;
  EXPECT_EQ(outcome_after(flush, *device_, [&] { challenge_and_fail(EIO), (void)loss.why(); }), EIO);
}

TEST_F(FailedAnswerTest, NorADurableWrite) {
  Loss loss(*device_);
  auto data = AlignedBuffer::zeroed(kBlockSize);
  io::IoRequest durable;
  durable.kind = io::IoKind::write;
  durable.durable = true;
  durable.offset = 100 << kBlockShift;
  durable.add(data.data(), data.size());
  EXPECT_EQ(outcome_after(durable, *device_, [&] { challenge_and_fail(EIO), (void)loss.why(); }), EIO);
}

TEST_F(FailedAnswerTest, ALostConnectionIsNoFailure) {
  challenge_and_fail(ENOTCONN);
  const auto is_answered = [this] {
    const auto found = Area(memory_).read();
    return found->answer && found->answer->nonce == kNonce;
  };
  test::wait_until(is_answered);
  EXPECT_TRUE(write(*device_, 100).ok());
  EXPECT_TRUE(device_->flush().ok());
  EXPECT_EQ(device_->refusal(), "");
}

TEST_F(LeasedDeviceTest, RequestsOfQueuesFailTheSame) {
  const auto device = hold({.promise_ns = 1, .look_ns = 1'000'000 * kMillisecond});
  take_over();
  const auto reactor = io::Reactor::make();
  EXPECT_EQ(error_of_write(**device, *reactor), EBUSY);
}

TEST_F(LeasedDeviceTest, ADeviceThatDoesNotAnswerHasFailedAndIsNotBusy) {
  test::FaultDevice failing(memory_);
  const auto device = LeasedDevice::hold(std::make_unique<io::TraceDevice>(failing), {"test", "here"},
                                         {.promise_ns = 1, .look_ns = 1'000'000 * kMillisecond});
  failing.add({.action = test::Fault::Action::vanish});
  const auto reactor = io::Reactor::make();
  EXPECT_EQ(error_of_write(**device, *reactor), EIO);
  EXPECT_EQ((*device)->refusal(), "");
}

TEST_F(LeasedDeviceTest, AWriterThatKnowsNoLeasesIsNoticed) {
  const auto device = hold();
  write_superblock(2);
  AlignedBuffer block(kBlockSize);
  memory_.peek(0, block.span());
  EXPECT_FALSE((*device)->write(0, block.span()).ok());
  EXPECT_NE((*device)->refusal().find("takes no notice of leases"), std::string::npos);
}

TEST_F(LeasedDeviceTest, ItsOwnSuperblocksAreNoSurprise) {
  const auto device = hold();
  AlignedBuffer block(kBlockSize);
  for (std::uint64_t seed = 2; seed < 7; ++seed) {
    SeededRandom random(seed);
    format::MakeParameters parameters;
    parameters.device_blocks = memory_.geometry().blocks();
    format::encode_superblock(format::make_filesystem(parameters, random)->super, block.span());
    EXPECT_TRUE((*device)->write(0, block.span()).ok());
    EXPECT_TRUE((*device)->write((memory_.geometry().blocks() - 1) << kBlockShift, block.span()).ok());
  }
}

// A write that the host has no room for is tried again (io/holding_device.h), with the superblock of before in its place.
TEST_F(LeasedDeviceTest, ASuperblockMayBeTriedAgain) {
  test::FaultDevice failing(memory_);
  const auto device = LeasedDevice::hold(std::make_unique<io::TraceDevice>(failing), {"test", "here"});
  AlignedBuffer block(kBlockSize);
  SeededRandom random(2);
  format::MakeParameters parameters;
  parameters.device_blocks = memory_.geometry().blocks();
  format::encode_superblock(format::make_filesystem(parameters, random)->super, block.span());
  failing.add({.kind = io::IoKind::write, .times = 3, .touches_block = 0, .error = ENOSPC});
  for (int attempt = 0; attempt < 3; ++attempt) EXPECT_TRUE((*device)->write(0, block.span()).fails_with(Errc::no_space));
  EXPECT_TRUE((*device)->write(0, block.span()).ok()) << (*device)->refusal();
  EXPECT_TRUE((*device)->write(0, block.span()).ok()) << (*device)->refusal();
}

}  // namespace
}  // namespace varve::lease
