// A device of a filesystem in memory that is held by a lease, and what it says of the lease's loss.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "base/buffer.h"
#include "format/make.h"
#include "io/mem_device.h"
#include "io/reactor.h"
#include "io/trace_device.h"
#include "lease/leased_device.h"

namespace varve::lease {

// What a device says of the loss of its lease.
class Loss {
 public:
  explicit Loss(LeasedDevice& device) {
    device.on_lost([this](const std::string& reason) {
      const std::lock_guard lock(mutex_);
      why_ = reason;
      told_.notify_all();
    });
  }

  // Waits for it as long as only what hangs takes; empty: it has said nothing.
  std::string why() {
    std::unique_lock lock(mutex_);
    (void)told_.wait_for(lock, std::chrono::seconds(300), [this] { return !why_.empty(); });
    return why_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::string why_;
};

class LeasedDeviceTest : public testing::Test {
 protected:
  LeasedDeviceTest() { write_superblock(1); }

  Result<std::unique_ptr<LeasedDevice>> hold(const Times& times = {}) {
    return LeasedDevice::hold(std::make_unique<io::TraceDevice>(memory_), {"test", "here"}, times);
  }
  void write_superblock(std::uint64_t seed) {
    SeededRandom random(seed);
    format::MakeParameters parameters;
    parameters.device_blocks = memory_.geometry().blocks();
    AlignedBuffer block(kBlockSize);
    format::encode_superblock(format::make_filesystem(parameters, random)->super, block.span());
    memory_.poke(0, block.span());
  }
  // As if another program, somewhere else, had taken it.
  void take_over() {
    format::Lease lease;
    lease.holder = 77;
    lease.process.host = "elsewhere";
    EXPECT_TRUE(Area(memory_).write(lease).ok());
  }
  static Status write(io::BlockDevice& device, std::uint64_t block) {
    const auto data = AlignedBuffer::zeroed(kBlockSize);
    return device.write(block << kBlockShift, data.span());
  }
  static int error_of_write(io::BlockDevice& device, io::Reactor& reactor) {
    auto data = AlignedBuffer::zeroed(kBlockSize);
    int error = -1;
    io::IoRequest request;
    request.kind = io::IoKind::write;
    request.offset = 100 << kBlockShift;
    request.add(data.data(), data.size());
    request.done = [&](io::IoRequest& done) { error = done.error; };
    device.submit(reactor, request);
    while (error < 0) reactor.wait(-1);
    return error;
  }

  io::MemDevice memory_{16 << 20};
};

}  // namespace varve::lease
