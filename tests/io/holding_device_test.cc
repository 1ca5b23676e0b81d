// HoldingDevice: writes that fail for want of room.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "io/backends.h"
#include "io/holding_device.h"
#include "io/mem_device.h"
#include "io/trace_device.h"
#include "support/fault_device.h"
#include "support/waiting.h"

namespace varve::io::test {
namespace {

using varve::test::Fault;
using varve::test::FaultDevice;
using varve::test::wait_until;
using News = HoldingDevice::News;
using namespace std::chrono_literals;

// As a file that is read and written past the page cache says of itself.
class DirectMemory : public MemDevice {
 public:
  explicit DirectMemory(bool direct) : MemDevice(kSmallBytes), geometry_(MemDevice::geometry()) { geometry_.direct = direct; }
  const Geometry& geometry() const override { return geometry_; }
  std::optional<Connection> connection() const override { return is_served_ ? std::optional<Connection>(Connection{}) : std::nullopt; }
  void be_served() { is_served_ = true; }

 private:
  Geometry geometry_;
  bool is_served_ = false;
};

class HoldingDeviceTest : public ::testing::TestWithParam<ReactorKind> {
 protected:
  explicit HoldingDeviceTest(bool direct = true) : memory_(direct) {}

  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  void begin() {
    ASSERT_TRUE(device_.begin([this](News news) {
      ++told_[static_cast<std::size_t>(news)];
    }).ok());
  }
  std::uint64_t told(News news) const { return told_[static_cast<std::size_t>(news)]; }
  Fault full(std::uint64_t times = Fault::kForEver) {
    Fault fault;
    fault.kind = IoKind::write;
    fault.times = times;
    fault.error = ENOSPC;
    return fault;
  }
  // Returns when it has been tried several times.
  void wait_for_tries(std::uint64_t count) {
    wait_until([&, before = faulty_.hits()] { return faulty_.hits() >= before + count; });
  }
  void run_until_tried(Reactor& reactor, std::uint64_t count) {
    for (const std::uint64_t before = faulty_.hits(); faulty_.hits() < before + count;) reactor.wait(1'000'000);
  }

  // At first; later there is.
  void write_durably_where_there_is_no_room() {
    const auto reactor = Reactor::make(GetParam());
    faulty_.add(full(2));
    Batch batch;
    batch.write(3, 7).durable = true;
    batch.submit_all(device_, *reactor);
    drain(*reactor);
    EXPECT_EQ(batch.failed(), 0U);
  }

  DirectMemory memory_;
  FaultDevice faulty_{memory_};
  HoldingDevice device_{faulty_, {200us, 1ms, 5ms}};
  std::atomic<std::uint64_t> told_[3] = {};
};

class HoldingThroughPageCache : public HoldingDeviceTest {
 protected:
  HoldingThroughPageCache() : HoldingDeviceTest(false) {}
};

TEST_P(HoldingDeviceTest, AWriteIsHeldUntilThereIsRoom) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.write(3, 7, 2);
  batch.write(9, 8);
  faulty_.add(full());
  batch.submit_all(device_, *reactor);
  run_until_tried(*reactor, 8);
  EXPECT_EQ(batch.completed(), 0U);
  EXPECT_EQ(reactor->in_flight(), 2U);
  const HostRoom room = device_.room();
  EXPECT_TRUE(room.is_full);
  EXPECT_EQ(room.held_bytes, 3 * kBlockSize);
  EXPECT_EQ(room.times, 1U);
  wait_until([&] { return told(News::full) == 1 && told(News::still_full) > 1; });
  EXPECT_TRUE(block_has(device_, 3, 0)) << "nothing is written, and reads pass";
  faulty_.heal();
  drain(*reactor);
  EXPECT_EQ(batch.completed(), 2U);
  EXPECT_EQ(batch.failed(), 0U);
  EXPECT_TRUE(batch[0].was_held);
  EXPECT_TRUE(block_has(device_, 3, 7));
  EXPECT_TRUE(block_has(device_, 9, 8));
  wait_until([&] { return told(News::over) == 1; });
  EXPECT_FALSE(device_.room().is_full);
  EXPECT_EQ(device_.room().held_bytes, 0U);
}

TEST_P(HoldingDeviceTest, ARequestMayBeUsedAgain) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.write(3, 7);
  faulty_.add(full(3));
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_TRUE(batch[0].was_held);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_FALSE(batch[0].was_held);
  EXPECT_EQ(batch.completed(), 2U);
  EXPECT_EQ(batch.failed(), 0U);
}

TEST_P(HoldingDeviceTest, WhatIsGivenUpEndsWithItsError) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.write(3, 7);
  Fault quota = full();
  quota.error = EDQUOT;
  faulty_.add(quota);
  batch.submit_all(device_, *reactor);
  run_until_tried(*reactor, 2);
  EXPECT_EQ(batch.completed(), 0U);
  device_.limit_holding(3'000'000);
  drain(*reactor);
  EXPECT_EQ(batch[0].error, EDQUOT);
  wait_until([&] { return told(News::over) == 1; });
  EXPECT_FALSE(put(device_, 4, 1).ok()) << "no more is held";
  EXPECT_FALSE(device_.room().is_full);
  faulty_.heal();
  EXPECT_TRUE(put(device_, 4, 1).ok());
}

// As after a crash of a test: the owner of the request hears that nothing comes of it.
TEST_P(HoldingDeviceTest, AReactorMayEndMeanwhile) {
  begin();
  static std::atomic<int> abandoned;
  abandoned = 0;
  auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.write(3, 7).abandoned = [](IoRequest&) { ++abandoned; };
  faulty_.add(full());
  batch.submit_all(device_, *reactor);
  run_until_tried(*reactor, 3);
  reactor.reset();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(batch.completed(), 0U);
}

TEST_P(HoldingDeviceTest, AThreadThatBlocksWaits) {
  begin();
  faulty_.add(full());
  std::atomic<bool> is_written = false;
  std::thread writer([&] {
    EXPECT_TRUE(put(device_, 5, 3).ok());
    is_written = true;
  });
  wait_until([&] { return told(News::still_full) > 0; });
  EXPECT_FALSE(is_written);
  EXPECT_EQ(device_.room().held_bytes, kBlockSize);
  faulty_.heal();
  writer.join();
  EXPECT_TRUE(block_has(device_, 5, 3));
  wait_until([&] { return told(News::over) == 1; });
}

TEST_P(HoldingDeviceTest, AThreadThatBlocksIsToldThatItIsGivenUp) {
  begin();
  faulty_.add(full());
  std::thread writer([&] { EXPECT_TRUE(put(device_, 5, 3).fails_with(Errc::no_space)); });
  wait_until([&] { return told(News::full) > 0; });
  device_.limit_holding(0);
  writer.join();
}

// A try in between may have written a part.
TEST_P(HoldingDeviceTest, AWriteInPartIsMadeAgainAsAWhole) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  Fault half = full(3);
  half.action = Fault::Action::partial;
  faulty_.add(half);
  Batch batch;
  batch.write(3, 7, 4);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 0U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(block_has(device_, 3 + i, 7));
}

// A device above the writer's lease asks it anew for each try: a program that has lost it writes nothing more.
TEST_P(HoldingDeviceTest, AnotherErrorOfALaterTryIsTheAnswer) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  faulty_.add(full(2));
  Fault lost = full();
  lost.error = EBUSY;
  faulty_.add(lost);
  Batch batch;
  batch.write(3, 7);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch[0].error, EBUSY);
  EXPECT_TRUE(block_has(memory_, 3, 0));
  wait_until([&] { return told(News::over) == 1; });
}

TEST_P(HoldingDeviceTest, NothingElseIsHeld) {
  faulty_.add(full(1));
  EXPECT_TRUE(put(device_, 1, 1).fails_with(Errc::no_space)) << "it has not begun";
  begin();
  for (const IoKind kind : {IoKind::read, IoKind::flush, IoKind::discard}) {
    Fault fault = full(1);
    fault.kind = kind;
    faulty_.add(fault);
  }
  Fault broken = full(1);
  broken.error = EIO;
  faulty_.add(broken);
  const auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.read(1);
  batch.flush();
  batch.discard(1, 1);
  batch.write(1, 1);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 4U);
  faulty_.add(full(1));
  Batch lease;
  lease.write(1, 1).by_guard = true;
  lease.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(lease.failed(), 1U);
  EXPECT_EQ(device_.room().times, 0U);
}

TEST_P(HoldingDeviceTest, TheTimeOfAHeldWriteIsNoMeasurement) {
  begin();
  TraceDevice trace(device_);
  unsigned measured = 0;
  trace.on_written([&](const IoRequest&, std::uint64_t, std::uint64_t) { ++measured; });
  const auto reactor = Reactor::make(GetParam());
  Batch batch;
  batch.write(3, 7);
  faulty_.add(full(1));
  batch.submit_all(trace, *reactor);
  drain(*reactor);
  EXPECT_EQ(measured, 0U);
  EXPECT_EQ(trace.counts()[IoKind::write].errors, 0U);
  batch.submit_all(trace, *reactor);
  drain(*reactor);
  EXPECT_EQ(measured, 1U);
}

// Through a page cache, the error of a durable write may be that of another write, which is lost.
TEST_P(HoldingThroughPageCache, ADurableWriteIsAWriteAndAFlush) {
  begin();
  const auto reactor = Reactor::make(GetParam());
  faulty_.add(full(2));
  Batch batch;
  batch.write(3, 7).durable = true;
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch.failed(), 0U);
  EXPECT_TRUE(batch[0].durable);
  EXPECT_EQ(batch[0].kind, IoKind::write);
  EXPECT_EQ(faulty_.submitted(IoKind::flush), 1U);
  EXPECT_TRUE(block_has(device_, 3, 7));
  Fault lost = full(1);
  lost.kind = IoKind::flush;
  faulty_.add(lost);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch[0].error, ENOSPC) << "a flush is not held";
  EXPECT_EQ(device_.room().times, 1U);
}

TEST_P(HoldingThroughPageCache, ADurableWriteThatBlocksIsAWriteAndAFlush) {
  begin();
  IoRequest request;
  const AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  request.kind = IoKind::write;
  request.durable = true;
  request.add(const_cast<std::byte*>(block.data()), kBlockSize);
  faulty_.add(full(2));
  EXPECT_EQ(device_.execute(request), 0);
  EXPECT_TRUE(request.durable);
  EXPECT_EQ(faulty_.submitted(IoKind::flush), 1U);
  Fault lost = full(1);
  lost.kind = IoKind::flush;
  faulty_.add(lost);
  EXPECT_EQ(device_.execute(request), ENOSPC);
  EXPECT_EQ(device_.room().times, 1U);
}

TEST_P(HoldingDeviceTest, ADurableWritePastThePageCacheStaysOne) {
  begin();
  write_durably_where_there_is_no_room();
  EXPECT_EQ(faulty_.submitted(IoKind::flush), 0U);
}

// A server has a page cache of its own.
TEST_P(HoldingDeviceTest, ADurableWriteToAServerIsAWriteAndAFlush) {
  memory_.be_served();
  begin();
  write_durably_where_there_is_no_room();
  EXPECT_EQ(faulty_.submitted(IoKind::flush), 1U);
}

// A mount that becomes read-only holds nothing more, however long an unmount before would have waited.
TEST_P(HoldingDeviceTest, TheEndOfHoldingIsAtOnce) {
  begin();
  device_.limit_holding(1);
  device_.limit_holding(0);
  const auto reactor = Reactor::make(GetParam());
  faulty_.add(full(1));
  Batch batch;
  batch.write(3, 7);
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(batch[0].error, ENOSPC);
  EXPECT_EQ(device_.room().times, 0U);
}

std::string name_of_reactor(const ::testing::TestParamInfo<ReactorKind>& info) {
  return info.param == ReactorKind::best ? "best" : "poll";
}
INSTANTIATE_TEST_SUITE_P(Reactors, HoldingDeviceTest, ::testing::Values(ReactorKind::best, ReactorKind::poll), name_of_reactor);
INSTANTIATE_TEST_SUITE_P(Reactors, HoldingThroughPageCache, ::testing::Values(ReactorKind::best, ReactorKind::poll), name_of_reactor);

}  // namespace
}  // namespace varve::io::test
