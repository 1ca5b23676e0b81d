#include "daemon/early_end.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <system_error>

namespace varve::fuse {

namespace {

[[noreturn]] void end_by(int number) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, number);
  ::signal(number, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  (void)::kill(::getpid(), number);
  ::_exit(1);
}

}  // namespace

EarlyEnd::EarlyEnd(const sigset_t& signals)
    : signals_fd_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)), over_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  try {
    if (signals_fd_ < 0 || over_fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    ::close(signals_fd_);
    ::close(over_fd_);
    throw;
  }
}

EarlyEnd::~EarlyEnd() {
  const std::uint64_t one = 1;
  while (::write(over_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(signals_fd_);
  ::close(over_fd_);
}

void EarlyEnd::watch() const {
  for (;;) {
    pollfd places[] = {{over_fd_, POLLIN, 0}, {signals_fd_, POLLIN, 0}};
    if (::poll(places, std::size(places), -1) < 0) continue;
    if (places[0].revents) return;
    signalfd_siginfo info{};
    if (::read(signals_fd_, &info, sizeof info) == sizeof info) end_by(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace varve::fuse
