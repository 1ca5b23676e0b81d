// Storage that has a lock of its own: it and the lease agree on which program may write.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "io/reactor.h"
#include "io/trace_device.h"
#include "leased_device_fixture.h"

namespace varve::lease {
namespace {

struct StorageLock {
  std::string owner;                 // that lives; empty: none
  bool is_neighbour = false;         // the owner is on this machine
  std::vector<io::ShutOut> taken;
  std::atomic<bool> has_failed{false};  // the device, later
};

class LockedStorage : public io::TraceDevice {
 public:
  LockedStorage(io::BlockDevice& below, StorageLock& lock) : TraceDevice(below), lock_(lock), geometry_(below.geometry()) {
    geometry_.may_be_shared = true;
  }
  const io::Geometry& geometry() const override { return geometry_; }
  std::string refusal() const override { return lock_.has_failed ? "shut out" : ""; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    if (!lock_.has_failed) return TraceDevice::submit(reactor, request);
    reactor.finish_later(request, EIO);
  }
  int execute(io::IoRequest& request) override { return lock_.has_failed ? request.error = EIO : TraceDevice::execute(request); }
  Result<bool> shut_out(io::ShutOut others) override {
    lock_.taken.push_back(others);
    const bool by_force = others == io::ShutOut::all || (others == io::ShutOut::dead_neighbour && lock_.is_neighbour);
    if (!lock_.owner.empty() && !by_force) return Error(Errc::in_use, "in use by " + lock_.owner);
    lock_.owner.clear();
    return true;
  }

 private:
  StorageLock& lock_;
  io::Geometry geometry_;
};

class LockedStorageTest : public LeasedDeviceTest {
 protected:
  Result<std::unique_ptr<LeasedDevice>> hold_locked(bool takes_over = false) {
    const Times times{.promise_ns = 3'600'000 * kMillisecond, .look_ns = 1 * kMillisecond};  // nobody could wait for so long
    return LeasedDevice::hold(std::make_unique<LockedStorage>(memory_, lock_), {"test", "here", takes_over}, times);
  }
  void lease_of(const format::Process& process) {
    format::Lease lease;
    lease.holder = 77;
    lease.promise_ms = 3'600'000;
    lease.process = process;
    EXPECT_TRUE(Area(memory_).write(lease).ok());
  }

  StorageLock lock_;
};

// The holder of the lease had the lock then, and has it no more: nothing of it can arrive.
TEST_F(LockedStorageTest, WithTheLockThereIsNoWaitForALease) {
  format::Process elsewhere;
  elsewhere.host = "elsewhere";
  lease_of(elsewhere);
  const auto device = hold_locked();
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(lock_.taken, std::vector{io::ShutOut::nobody});
  EXPECT_TRUE(write(**device, 100).ok());
}

TEST_F(LockedStorageTest, OneThatLivesIsLeftAloneAndNamed) {
  lock_.owner = "client 7";
  format::Process elsewhere;
  elsewhere.host = "elsewhere";
  lease_of(elsewhere);
  const auto device = hold_locked();
  ASSERT_TRUE(device.fails_with(Errc::in_use));
  EXPECT_NE(device.error().message().find("client 7"), std::string::npos) << device.error().message();
  EXPECT_NE(device.error().message().find("elsewhere"), std::string::npos) << device.error().message();
  EXPECT_EQ(Area(memory_).read()->lease->holder, 77U) << "nothing has been written";
  EXPECT_FALSE(Area(memory_).read()->challenge);
}

TEST_F(LockedStorageTest, ATakeOverShutsOutAll) {
  lock_.owner = "client 7";
  format::Process elsewhere;
  elsewhere.host = "elsewhere";
  lease_of(elsewhere);
  const auto device = hold_locked(true);
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(lock_.taken, std::vector{io::ShutOut::all});
}

// This process with another beginning: the number has been used again.
TEST_F(LockedStorageTest, AProcessThatHasEndedHereIsShutOut) {
  lock_.owner = "client 7";
  lock_.is_neighbour = true;
  format::Process before = this_process("test", "before");
  ++before.started;
  lease_of(before);
  const auto device = hold_locked();
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(lock_.taken, std::vector{io::ShutOut::dead_neighbour});
}

TEST_F(LockedStorageTest, AnIdleHolderHearsThatItHasBeenShutOut) {
  auto device = hold_locked();
  ASSERT_TRUE(device.ok());
  Loss loss(**device);
  lock_.has_failed = true;
  EXPECT_EQ(loss.why(), "shut out");
  auto data = AlignedBuffer::zeroed(kBlockSize);
  io::IoRequest request;
  request.kind = io::IoKind::write;
  request.offset = 100 << kBlockShift;
  request.add(data.data(), data.size());
  EXPECT_EQ((*device)->execute(request), EIO) << "a failed disk, not one in use";
}

}  // namespace
}  // namespace varve::lease
