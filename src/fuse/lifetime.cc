#include "fuse/lifetime.h"

#include <unistd.h>

#include <ctime>

namespace varve::fuse {

namespace {

// Sent by ourselves, so that one call waits for everything.
constexpr int kUnmounted = SIGUSR1;
constexpr int kDetached = SIGUSR2;

}  // namespace

Lifetime::Lifetime() {
  ::sigemptyset(&ours_);
  for (const int number : {kUnmounted, kDetached}) ::sigaddset(&ours_, number);
  signals_ = ours_;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void Lifetime::unmounted() { ::kill(::getpid(), kUnmounted); }

void Lifetime::detached() { ::kill(::getpid(), kDetached); }

End Lifetime::wait() { return wait_for(signals_); }

End Lifetime::wait_detached() { return wait_for(ours_); }

End Lifetime::wait_for(const sigset_t& signals) {
  for (;;) {
    siginfo_t info;
    const int number = ::sigwaitinfo(&signals, &info);
    if (number < 0) continue;
    const bool is_ours = ::sigismember(&ours_, number) == 1;
    if (!is_ours) return End::signalled;
    if (info.si_pid == ::getpid()) return number == kUnmounted ? End::unmounted : End::detached;
  }
}

bool Lifetime::wait_more(int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  return ::sigtimedwait(&signals_, nullptr, &time) > 0;
}

}  // namespace varve::fuse
