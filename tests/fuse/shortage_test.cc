// What the system has no more of.
#include <sys/resource.h>

#include <cstdlib>

#include "control/older.h"
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

// What follows ends with 0 if all is well.

// The limit on threads does not hold for root.
void drop_privileges() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(2);
}

void forbid_threads() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(3);
}

[[noreturn]] void serve_without_further_threads() {
  drop_privileges();
  ServedMount mount;
  mount.initialise();
  const auto file = mount.create(1, "f");
  forbid_threads();
  const fuse_lseek_in seek{0, 0, SEEK_HOLE, 0};
  if (mount.kernel().call(FUSE_LSEEK, file.nodeid, bytes_of(seek)).error != ENXIO) std::_Exit(4);  // of an empty file
  fuse_ioctl_in in{};
  in.cmd = static_cast<std::uint32_t>(control::kScrubIoctl);
  in.in_size = in.out_size = sizeof(control::ScrubCommand);
  control::ScrubCommand scrub{};
  scrub.command = control::ScrubCommand::kStart;
  if (mount.kernel().call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(scrub)).error != ENOMEM) std::_Exit(5);
  std::_Exit(mount.kernel().call(FUSE_STATFS, 1).error ? 6 : 0);
}

[[noreturn]] void place_without_a_thread_to_try() {
  drop_privileges();
  daemon::IdleWatch watch;
  forbid_threads();
  const daemon::CpuPlacement placement(daemon::IdleThreads::automatic, 0, &watch);
  std::_Exit(placement.is_idle() ? 4 : 0);
}

TEST(Shortage, OfThreadsLeavesTheMountServed) { EXPECT_EXIT(serve_without_further_threads(), ::testing::ExitedWithCode(0), ""); }

TEST(Shortage, OfThreadsLeavesAServingThreadNormal) { EXPECT_EXIT(place_without_a_thread_to_try(), ::testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace varve::fuse
