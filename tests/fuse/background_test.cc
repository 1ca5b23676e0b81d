// Going into the background, when the process that was asked for it ends too early.
#include "daemon/background.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "support/waiting.h"

namespace varve::fuse {
namespace {

pid_t starter = 0;

[[noreturn]] void end() { ::_exit(0); }
void wait_until_alone() {
  test::wait_until([] { return ::getppid() != starter; });
}

// Nobody is left to be told, and nobody could interrupt the mount: no signal comes for an end that was before it was asked for.
TEST(Background, DoesNotBeginWhenItsParentHasEndedAlready) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) GTEST_SKIP() << "an emulator without PR_SET_CHILD_SUBREAPER";
  void* const page = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto* const begins = new (page) std::atomic<bool>(false);
  const pid_t first = ::fork();
  ASSERT_GE(first, 0);
  if (first == 0) {
    starter = ::getpid();
    ::pthread_atfork(nullptr, end, wait_until_alone);
    if (daemon::Background::start().ok()) *static_cast<std::atomic<bool>*>(page) = true;
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(first, nullptr, 0), first);
  ASSERT_GT(::waitpid(-1, nullptr, 0), 0) << "the second process";
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  EXPECT_FALSE(*begins);
  ::munmap(page, sizeof(std::atomic<bool>));
}

}  // namespace
}  // namespace varve::fuse
