// What the kernel is asked to write back.
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

TEST(Flushing, WritesBackWhatTheKernelStillKnows) {
  ServedMount mount;
  mount.initialise();
  std::vector<std::uint64_t> files;
  for (const char* name : {"a", "b", "c", "forgotten"}) files.push_back(mount.create(1, name).nodeid);
  mount.kernel().send(FUSE_FORGET, files.back(), bytes_of(fuse_forget_in{1}));
  ASSERT_EQ(mount.kernel().call(FUSE_STATFS, 1).error, 0);  // after that
  const unsigned before = mount.kernel().notifications();
  mount.session().write_back();
  ASSERT_EQ(mount.kernel().call(FUSE_STATFS, 1).error, 0);
  EXPECT_EQ(mount.kernel().notifications() - before, 3U);
}

}  // namespace
}  // namespace varve::fuse
