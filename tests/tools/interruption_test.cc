// Ctrl-C while a tool reads, and while it waits in the kernel for a daemon.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <sstream>

#include "shared/interruptible.h"
#include "varve/steps.h"
#include "varve/volume/kernel_wait.h"

namespace varve::tool {
namespace {

struct Streams {
  std::istringstream in;
  std::ostringstream out, err;
  IoLayer io{in, out, err};
};

TEST(Steps, end_when_they_are_interrupted) {
  Streams streams;
  Steps steps(streams.io, true, "the file that was begun is removed");
  EXPECT_TRUE(steps.next([] { return "half"; }, 0.5).ok());
  ASSERT_EQ(std::raise(SIGINT), 0);
  const Status next = steps.next([] { return "half"; }, 0.5);
  ASSERT_TRUE(next.fails_with(Errc::interrupted));
  EXPECT_EQ(next.error().message(), "interrupted: the file that was begun is removed");
  EXPECT_EQ(Interruptible::exit_status(1), 130);
}

TEST(Interruptible, leaves_ignored_what_the_caller_ignores) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const Interruptible interruptible;
    ASSERT_EQ(std::raise(SIGHUP), 0);
    EXPECT_FALSE(Interruptible::asked());
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST(Interruptible, ends_when_the_terminal_goes) {
  const Interruptible interruptible;
  ASSERT_EQ(std::raise(SIGHUP), 0);
  EXPECT_TRUE(Interruptible::asked());
  EXPECT_EQ(Interruptible::exit_status(1), 129);
}

// A call that no signal ends; what it waits for never comes.
void wait_in_vain(int signal, bool json) {
  IoLayer io{std::cin, std::cerr, std::cerr};
  const KernelWait wait(io, {"making a checkpoint", kMountGoesOn, json});
  ::kill(::getpid(), signal);
  for (;;) ::pause();
}

TEST(KernelWait, ends_the_tool_for_a_signal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const said = "varve: interrupted: the mount goes on with it by itself, and nothing is lost\n$";
  EXPECT_EXIT(wait_in_vain(SIGINT, false), ::testing::ExitedWithCode(130), said);
  EXPECT_EXIT(wait_in_vain(SIGTERM, false), ::testing::ExitedWithCode(143), said);
  EXPECT_EXIT(wait_in_vain(SIGHUP, false), ::testing::ExitedWithCode(129), said);
  EXPECT_EXIT(wait_in_vain(SIGINT, true), ::testing::ExitedWithCode(130), "\"exit_status\": 130");
}

TEST(KernelWait, leaves_signals_as_they_were) {
  Streams streams;
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  { const KernelWait wait(streams.io, {"making a checkpoint", kMountGoesOn}); }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(::sigismember(&before, SIGINT), ::sigismember(&after, SIGINT));
  EXPECT_EQ(streams.err.str() + streams.out.str(), "");
}

}  // namespace
}  // namespace varve::tool
