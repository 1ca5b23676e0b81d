#include "daemon/lifetime.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

namespace varve::daemon {

namespace {

constexpr int kEnding[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPWR, SIGXCPU};
constexpr int kIgnored[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGIO, SIGPIPE, SIGXFSZ, SIGSTKFLT};

int make_counter() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return fd;
}

void count(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

bool was_counted(int fd) {
  std::uint64_t value = 0;
  return ::read(fd, &value, sizeof value) == sizeof value;
}

}  // namespace

Lifetime::Lifetime()
    : unmounted_fd_(make_counter()),
      detached_fd_(make_counter()),
      lacking_fd_(make_counter()),
      reserve_(kReserve, [this] { count(lacking_fd_); }) {
  ::sigemptyset(&signals_);
  for (const int number : kEnding) ::sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  for (const int number : kIgnored) ::signal(number, SIG_IGN);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) ::signal(number, SIG_IGN);
}

Lifetime::~Lifetime() {
  ::close(unmounted_fd_);
  ::close(detached_fd_);
  ::close(lacking_fd_);
}

void Lifetime::unmounted() { count(unmounted_fd_); }

void Lifetime::detached() { count(detached_fd_); }

std::optional<End> Lifetime::wait(int milliseconds) { return wait_for(true, milliseconds); }

End Lifetime::wait_detached() { return *wait_for(false, -1); }

bool Lifetime::wait_more(int milliseconds) { return wait(milliseconds).has_value(); }

std::optional<End> Lifetime::wait_for(bool signals_count, int milliseconds) {
  const int signals = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  std::optional<End> end;
  while (!end) {
    // Negative descriptors are passed over: without one for signals it ends with its mount only.
    pollfd places[] = {{unmounted_fd_, POLLIN, 0},
                       {detached_fd_, POLLIN, 0},
                       {signals_count ? signals : -1, POLLIN, 0},
                       {signals_count ? lacking_fd_ : -1, POLLIN, 0}};
    const int ready = ::poll(places, std::size(places), milliseconds);
    if (ready == 0) break;
    if (ready < 0) continue;
    signalfd_siginfo info{};
    if (was_counted(unmounted_fd_)) end = End::unmounted;
    else if (was_counted(detached_fd_)) end = End::detached;
    else if (signals_count && ::read(signals, &info, sizeof info) == sizeof info) end = End::signalled;
    else if (signals_count && was_counted(lacking_fd_)) end = End::lacks_memory;
  }
  if (signals >= 0) ::close(signals);
  return end;
}

}  // namespace varve::daemon
