#include "fuse/lifetime.h"

#include <unistd.h>

#include <ctime>

namespace varve::fuse {

namespace {

constexpr int kUnmounted = SIGUSR1;  // sent by ourselves, so that one call waits for everything

}  // namespace

Lifetime::Lifetime() {
  ::sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, kUnmounted}) ::sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void Lifetime::unmounted() { ::kill(::getpid(), kUnmounted); }

End Lifetime::wait() {
  for (;;) {
    siginfo_t info;
    const int number = ::sigwaitinfo(&signals_, &info);
    if (number < 0) continue;
    if (number != kUnmounted) return End::signalled;
    if (info.si_pid == ::getpid()) return End::unmounted;
  }
}

bool Lifetime::wait_more(int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  return ::sigtimedwait(&signals_, nullptr, &time) > 0;
}

}  // namespace varve::fuse
