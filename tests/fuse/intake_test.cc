// Serving goes on however little memory a thread has for its messages.
#include <sys/stat.h>

#include "fuse/served_mount.h"

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
