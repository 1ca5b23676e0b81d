// Serving goes on however little memory a thread has for its messages.
#include <sys/stat.h>

#include "fuse/served_mount.h"
#include "fuse/transport/device_message.h"
#include "support/manual_clock.h"

namespace varve::fuse {
namespace {

Bytes read_of(std::uint64_t offset, std::uint32_t size) {
  fuse_read_in in{};
  in.offset = offset;
  in.size = size;
  return bytes_of(in);
}

Bytes write_of(std::uint64_t offset, std::uint32_t size) {
  fuse_write_in in{};
  in.offset = offset;
  in.size = size;
  return bytes_of(in) + Bytes(size, std::byte{7});
}

void expect_served(ServedMount& mount, int requests) {
  for (int i = 0; i < requests; ++i)
    ASSERT_EQ(mount.kernel().call(FUSE_GETATTR, 1, bytes_of(fuse_getattr_in{})).error, 0) << i;
}

TEST(Intake, ManyThreads) {
  ServedMount mount({}, {.threads = 64});
  mount.initialise();
  expect_served(mount, 2000);
}

TEST(Intake, ManyThreadsAndLittleMemory) {
  ServedMount mount({}, {.threads = 16, .request_bytes = 16u << 20});
  mount.initialise();
  expect_served(mount, 1000);
  const auto file = mount.create(1, "f");
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(mount.kernel().call(FUSE_WRITE, file.nodeid, write_of(i << 20, 1u << 20)).error, 0) << i;
    ASSERT_EQ(mount.kernel().call(FUSE_READ, file.nodeid, read_of(i << 20, 1u << 20)).body.size(), 1u << 20) << i;
  }
}

// What is kept in messages is sealed when they run out. Here its time never comes.
TEST(Intake, StreamsThatNobodySyncsKeepNoThreadFromServing) {
  test::ManualClock clock;
  fs::Options options;
  options.clock = &clock;
  ServedMount mount({}, {.threads = 1, .request_bytes = daemon::Server::kLeastPerThread}, options);
  mount.initialise();
  const auto file = mount.create(1, "f");
  clock.advance(10'000'000'000);  // after so long without a sync much may wait
  for (std::uint64_t i = 0; i < 12; ++i)
    ASSERT_EQ(mount.kernel().call(FUSE_WRITE, file.nodeid, write_of((2u << 20) + (i << 19), 512u << 10)).error, 0) << i;
  expect_served(mount, 100);
}

// Each in a buffer of its own size: the kernel has some sixty on their way.
TEST(Intake, SmallWritesThatWaitKeepNoThreadFromServing) {
  for (const std::uint32_t bytes : {4096U, 16384U - 80U}) {
    auto pool = std::make_shared<BufferPool>();
    Arrivals arrivals;
    std::vector<DeviceMessage*> free;
    DeviceMessage message(-1, pool, free, arrivals);
    fuse_in_header header{};
    header.opcode = FUSE_WRITE;
    const Bytes body = write_of(0, bytes);
    header.len = static_cast<std::uint32_t>(sizeof header + body.size());
    Lease storage = pool->take(BufferPool::kMaxBytes);
    std::memcpy(storage.data(), &header, sizeof header);
    std::memcpy(storage.data() + sizeof header, body.data(), body.size());
    ASSERT_TRUE(message.take({storage.data(), header.len}, storage));
    EXPECT_TRUE(storage) << "the next message may be read there";
    EXPECT_LE(64 * (pool->leased_bytes() - storage.size()), 8u << 20);
    EXPECT_EQ(message.payload().size(), bytes);
  }
}

// Their readers may never come back, and only requests that are taken could tell.
TEST(Intake, WhatIsReadAheadKeepsNoThreadFromServing) {
  constexpr std::uint32_t kRead = 260u << 10;  // more than a buffer of medium size holds
  ServedMount mount({}, {.threads = 2, .request_bytes = 16u << 20});
  mount.initialise();
  for (const char* name : {"a", "b", "c"}) {
    const auto file = mount.create(1, name);
    for (std::uint64_t i = 0; i < 6; ++i)
      ASSERT_EQ(mount.kernel().call(FUSE_WRITE, file.nodeid, write_of(i << 20, 1u << 20)).error, 0);
    ASSERT_EQ(mount.kernel().call(FUSE_FSYNC, file.nodeid, bytes_of(fuse_fsync_in{})).error, 0);
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_EQ(mount.kernel().call(FUSE_READ, file.nodeid, read_of(i * kRead, kRead)).body.size(), kRead);
  }
  expect_served(mount, 100);
}

}  // namespace
}  // namespace varve::fuse
