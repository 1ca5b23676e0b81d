// What the system has no more of.
#include <sys/resource.h>

#include <cstdlib>

#include "fuse/control.h"
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

// Without a privilege, because the limit does not hold for root. Ends with 0 if all is well.
[[noreturn]] void serve_without_further_threads() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(2);
  ServedMount mount;
  mount.initialise();
  const auto file = mount.create(1, "f");
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(3);
  const fuse_lseek_in seek{0, 0, SEEK_HOLE, 0};
  if (mount.kernel().call(FUSE_LSEEK, file.nodeid, bytes_of(seek)).error != ENXIO) std::_Exit(4);  // of an empty file
  fuse_ioctl_in in{};
  in.cmd = static_cast<std::uint32_t>(kScrubIoctl);
  in.in_size = in.out_size = sizeof(ScrubCommand);
  ScrubCommand scrub{};
  scrub.command = ScrubCommand::kStart;
  if (mount.kernel().call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(scrub)).error != ENOMEM) std::_Exit(5);
  std::_Exit(mount.kernel().call(FUSE_STATFS, 1).error ? 6 : 0);
}

TEST(Shortage, OfThreadsLeavesTheMountServed) { EXPECT_EXIT(serve_without_further_threads(), ::testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace varve::fuse
