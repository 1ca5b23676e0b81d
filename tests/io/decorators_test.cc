// TraceDevice, OverlayDevice and FaultDevice.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "io/backends.h"
#include "io/mem_device.h"
#include "io/overlay_device.h"
#include "io/trace_device.h"
#include "support/fault_device.h"
#include "support/timed_device.h"

namespace varve::io::test {
namespace {

using varve::test::Fault;
using varve::test::FaultDevice;

// Each call is a microsecond later.
class SteppingClock : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t monotonic_ns() override { return now_ += 1000; }

 private:
  std::uint64_t now_ = 0;
};

TEST(TraceDevice, CountsAndTimes) {
  MemDevice memory(kSmallBytes);
  SteppingClock clock;
  TraceDevice device(memory, {}, clock);
  const auto reactor = Reactor::make();
  Batch batch;
  batch.write(1, 1, 2);
  batch.write(5, 1);
  batch.flush();
  batch.read(1, 2);
  batch.discard(8, 4);
  batch.read(memory.geometry().blocks());  // beyond the end
  batch.submit_all(device, *reactor);
  EXPECT_EQ(reactor->in_flight(), 6U);
  drain(*reactor);
  EXPECT_EQ(batch.completed(), 6U);
  const TraceCounts counts = device.counts();
  EXPECT_EQ(counts[IoKind::write].requests, 2U);
  EXPECT_EQ(counts[IoKind::write].bytes, 3 * kBlockSize);
  EXPECT_EQ(counts[IoKind::read].requests, 2U);
  EXPECT_EQ(counts[IoKind::read].bytes, 2 * kBlockSize);
  EXPECT_EQ(counts[IoKind::read].errors, 1U);
  EXPECT_EQ(counts[IoKind::flush].requests, 1U);
  EXPECT_EQ(counts[IoKind::discard].bytes, 4 * kBlockSize);
  EXPECT_GT(counts[IoKind::write].total_ns, 0U);
  device.reset();
  EXPECT_EQ(device.counts()[IoKind::write].requests, 0U);
  EXPECT_EQ(device.counts()[IoKind::write].total_ns, 0U);
}

// The host's time is in no account, and what two requests on their way together take is there once.
TEST(TraceDevice, device_time_is_told_apart_by_who_asks_for_it) {
  MemDevice memory(kSmallBytes);
  varve::test::ManualClock clock;
  varve::test::TimedDevice timed(memory, clock, false, [](const IoRequest& request) { return request.kind == IoKind::read ? 3000 : 5000; });
  TraceDevice device(timed, {}, clock);
  ASSERT_TRUE(put(device, 2, 1).ok());
  ASSERT_TRUE(block_has(device, 2, 1));
  EXPECT_EQ(device.time_of_others().writing_ns, 5000U);
  EXPECT_EQ(device.time_of_others().reading_ns, 3000U);
  {
    const TraceDevice::Apart apart(device);
    clock.advance(1'000'000);
    ASSERT_TRUE(put(device, 3, 1).ok());
    {
      const TraceDevice::Apart nested(device);
    }
    ASSERT_TRUE(block_has(device, 3, 1));
    const auto reactor = Reactor::make();
    Batch batch;
    batch.write(1, 1, 2);
    batch.write(5, 1);
    batch.submit_all(device, *reactor);
    drain(*reactor);
  }
  EXPECT_EQ(device.time_apart().writing_ns, 15'000U);
  EXPECT_EQ(device.time_apart().reading_ns, 3000U);
  ASSERT_TRUE(put(device, 3, 1).ok());
  EXPECT_EQ(device.time_of_others().ns(), 13'000U);
}

TEST(TraceDevice, WritesTheProjectFormat) {
  std::ostringstream out;
  TraceWriter writer(out);
  MemDevice memory(kSmallBytes);
  SteppingClock clock;
  TraceDevice device(memory, std::ref(writer), clock);
  writer.note("a device");
  writer.mark("begin");
  ASSERT_TRUE(put(device, 2, 1).ok());
  ASSERT_TRUE(device.flush().ok());
  ASSERT_TRUE(device.discard(kBlockSize, 2 * kBlockSize).ok());
  ASSERT_TRUE(block_has(device, 2, 0));
  EXPECT_EQ(out.str(),
            "#a device\n"
            "#mark begin\n"
            "1000 W 8192 4096 -\n"
            "3000 F 0 0 -\n"
            "5000 D 4096 8192 -\n"
            "7000 R 8192 4096 -\n");
}

TEST(TraceDevice, CallbacksMaySubmitTheSameRequestAgain) {
  MemDevice memory(kSmallBytes);
  TraceDevice device(memory);
  const auto reactor = Reactor::make();
  AlignedBuffer data(kBlockSize);
  IoRequest request;
  request.kind = IoKind::write;
  request.add(data.data(), kBlockSize);
  int runs = 0;
  request.done = [&](IoRequest& self) {
    if (++runs < 10) device.submit(*reactor, self);
  };
  device.submit(*reactor, request);
  drain(*reactor);
  EXPECT_EQ(runs, 10);
  EXPECT_EQ(device.counts()[IoKind::write].requests, 10U);
}

TEST(OverlayDevice, KeepsTheBaseUntouched) {
  struct ReadOnly : MemDevice {
    using MemDevice::MemDevice;
    bool read_only() const override { return true; }
  };
  ReadOnly base(kSmallBytes);
  ASSERT_TRUE(put(base, 10, 1, 8).ok());
  OverlayDevice device(base);
  EXPECT_FALSE(device.read_only());
  ASSERT_TRUE(put(device, 12, 2, 2).ok());
  ASSERT_TRUE(device.discard(16 * kBlockSize, kBlockSize).ok());
  ASSERT_TRUE(device.flush().ok());

  AlignedBuffer data(10 * kBlockSize);
  ASSERT_TRUE(device.read(9 * kBlockSize, data.span()).ok());
  const auto at = [&](std::uint64_t block) { return data.data() + (block - 9) * kBlockSize; };
  EXPECT_TRUE(is_zero(at(9), kBlockSize));
  EXPECT_TRUE(has_pattern(at(10), 10, 1, 2));
  EXPECT_TRUE(has_pattern(at(12), 12, 2, 2));
  EXPECT_TRUE(has_pattern(at(14), 14, 1, 2));
  EXPECT_TRUE(is_zero(at(16), kBlockSize));
  EXPECT_TRUE(has_pattern(at(17), 17, 1));
  EXPECT_TRUE(block_has(device, 12, 2));

  for (std::uint64_t block = 10; block < 18; ++block) EXPECT_TRUE(block_has(base, block, 1));
}

TEST(OverlayDevice, RefusesWhatTheContractForbids) {
  MemDevice base(kSmallBytes);
  OverlayDevice device(base);
  EXPECT_FALSE(device.discard(kSmallBytes, kBlockSize).ok());
  EXPECT_FALSE(device.discard(1, kBlockSize).ok());
}

TEST(OverlayDevice, WrittenBlocksHideBadOnes) {
  MemDevice memory(kSmallBytes);
  FaultDevice base(memory);
  base.add({.kind = IoKind::read, .times = Fault::kForEver, .touches_block = 5});
  OverlayDevice device(base);
  AlignedBuffer data(kBlockSize);
  EXPECT_FALSE(device.read(5 * kBlockSize, data.span()).ok());
  ASSERT_TRUE(put(device, 5, 3).ok());
  EXPECT_TRUE(block_has(device, 5, 3));
}

TEST(OverlayDevice, OverARealBackend) {
  const Opened opened = open_backend(Backend::threads, kSmallBytes);
  ASSERT_TRUE(opened.device);
  ASSERT_TRUE(put(*opened.device, 1, 1, 4).ok());
  OverlayDevice device(*opened.device);
  const auto reactor = Reactor::make();
  Batch writes;
  writes.write(2, 2);
  writes.submit_all(device, *reactor);
  drain(*reactor);
  Batch reads;
  reads.read(1, 4);
  reads.read(2);
  reads.submit_all(device, *reactor);
  drain(*reactor);
  EXPECT_EQ(reads.completed(), 2U);
  EXPECT_TRUE(has_pattern(reads.data(0) + kBlockSize, 2, 2));
  EXPECT_TRUE(has_pattern(reads.data(0) + 2 * kBlockSize, 3, 1, 2));
  EXPECT_TRUE(has_pattern(reads.data(1), 2, 2));
  EXPECT_TRUE(block_has(*opened.device, 2, 1));
}

class Faults : public testing::Test {
 protected:
  MemDevice memory_{kSmallBytes};
  FaultDevice device_{memory_};
};

TEST_F(Faults, NthRequestFails) {
  device_.add({.kind = IoKind::write, .nth = 3, .times = 2, .error = ENOSPC});
  EXPECT_TRUE(put(device_, 1, 1).ok());
  EXPECT_TRUE(put(device_, 2, 1).ok());
  EXPECT_TRUE(put(device_, 3, 1).fails_with(Errc::no_space));
  EXPECT_TRUE(device_.flush().ok());
  EXPECT_TRUE(put(device_, 4, 1).fails_with(Errc::no_space));
  EXPECT_TRUE(put(device_, 5, 1).ok());
  EXPECT_TRUE(block_has(memory_, 3, 0));
  EXPECT_EQ(device_.hits(), 2U);
  EXPECT_EQ(device_.submitted(IoKind::write), 5U);
}

TEST_F(Faults, FlushFails) {
  device_.add({.kind = IoKind::flush});
  EXPECT_TRUE(device_.flush().fails_with(Errc::io));
  EXPECT_TRUE(device_.flush().ok());
}

TEST_F(Faults, PartialWrite) {
  device_.add({.action = Fault::Action::partial, .kind = IoKind::write});
  EXPECT_FALSE(put(device_, 1, 1, 4).ok());
  EXPECT_TRUE(block_has(memory_, 1, 1));
  EXPECT_TRUE(block_has(memory_, 2, 1));
  EXPECT_TRUE(block_has(memory_, 3, 0));
  device_.add({.action = Fault::Action::partial, .kind = IoKind::write});
  EXPECT_FALSE(put(device_, 1, 2).ok());
  EXPECT_TRUE(block_has(memory_, 1, 1));
}

TEST_F(Faults, PartialRequestComesBackWhole) {
  device_.add({.action = Fault::Action::partial, .kind = IoKind::read});
  const auto reactor = Reactor::make();
  Batch batch;
  AlignedBuffer more(3 * kBlockSize);
  IoRequest& request = batch.read(0, 2);
  request.add(more.data(), more.size());
  batch.submit_all(device_, *reactor);
  drain(*reactor);
  EXPECT_EQ(request.error, EIO);
  EXPECT_EQ(request.length, 5 * kBlockSize);
  ASSERT_EQ(request.iov.size(), 2U);
  EXPECT_EQ(request.iov[1].iov_len, more.size());
}

TEST_F(Faults, BitFlip) {
  ASSERT_TRUE(put(memory_, 6, 1).ok());
  device_.add({.action = Fault::Action::flip, .kind = IoKind::read, .touches_block = 6, .bit = 12345});
  EXPECT_TRUE(block_has(device_, 5, 0));
  EXPECT_FALSE(block_has(device_, 6, 1));
  EXPECT_TRUE(block_has(device_, 6, 1)) << "only once";
  EXPECT_TRUE(block_has(memory_, 6, 1));
}

TEST_F(Faults, LostWrite) {
  device_.add({.action = Fault::Action::lose, .kind = IoKind::write});
  EXPECT_TRUE(put(device_, 6, 1).ok());
  EXPECT_TRUE(block_has(memory_, 6, 0));
}

TEST_F(Faults, MisdirectedWrite) {
  device_.add({.action = Fault::Action::misdirect, .kind = IoKind::write, .shift_blocks = -2});
  EXPECT_TRUE(put(device_, 6, 1).ok());
  EXPECT_TRUE(block_has(memory_, 6, 0));
  AlignedBuffer data(kBlockSize);
  ASSERT_TRUE(memory_.read(4 * kBlockSize, data.span()).ok());
  EXPECT_TRUE(has_pattern(data.data(), 6, 1));
}

TEST_F(Faults, DeviceVanishes) {
  device_.add({.action = Fault::Action::vanish, .nth = 2});
  EXPECT_TRUE(put(device_, 1, 1).ok());
  AlignedBuffer data(kBlockSize);
  EXPECT_TRUE(device_.read(0, data.span()).fails_with(Errc::io));
  EXPECT_TRUE(device_.flush().fails_with(Errc::io));
  EXPECT_TRUE(put(device_, 1, 2).fails_with(Errc::io));
  device_.heal();
  EXPECT_TRUE(block_has(device_, 1, 1));
}

}  // namespace
}  // namespace varve::io::test
