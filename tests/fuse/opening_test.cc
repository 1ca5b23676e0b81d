// Which caller may open a file: the kernel does not ask, unless a file could refuse it.
#include <fcntl.h>
#include <linux/fs.h>

#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

int open_error(ServedMount& mount, Ino ino, std::uint32_t flags) {
  return mount.kernel().call(FUSE_OPEN, ino.v, bytes_of(fuse_open_in{flags, 0})).error;
}

TEST(Opening, IsNotAskedForAsARule) {
  ServedMount mount;
  mount.initialise();
  const Ino file{mount.create(1, "f").nodeid};
  EXPECT_EQ(open_error(mount, file, O_RDONLY), ENOSYS);
  EXPECT_EQ(open_error(mount, file, O_RDWR), ENOSYS);
}

TEST(Opening, IsRefusedByProtectedFiles) {
  ServedMount mount({.ask_opens = true});
  mount.initialise();
  const Ino file{mount.create(1, "f").nodeid};
  EXPECT_EQ(open_error(mount, file, O_RDWR), 0);

  mount.set_flags(file, FS_IMMUTABLE_FL);
  EXPECT_EQ(open_error(mount, file, O_RDONLY), 0);
  for (const std::uint32_t flags : {O_WRONLY, O_RDWR, O_WRONLY | O_APPEND}) EXPECT_EQ(open_error(mount, file, flags), EPERM);

  mount.set_flags(file, FS_APPEND_FL);
  EXPECT_EQ(open_error(mount, file, O_RDONLY), 0);
  EXPECT_EQ(open_error(mount, file, O_WRONLY | O_APPEND), 0);
  for (const std::uint32_t flags : {O_WRONLY, O_RDWR}) EXPECT_EQ(open_error(mount, file, flags), EPERM);

  mount.set_flags(file, FS_NODUMP_FL);
  EXPECT_EQ(open_error(mount, file, O_RDWR), 0);
  EXPECT_EQ(open_error(mount, Ino{12345}, O_RDWR), ESTALE);
}

}  // namespace
}  // namespace varve::fuse
