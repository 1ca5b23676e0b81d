#include "daemon/early_end.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

namespace varve::daemon {

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
    : signals_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)), over_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!signals_ || !over_) throw std::system_error(errno, std::generic_category(), "signalfd");
  thread_ = std::thread([this] { watch(); });
}

EarlyEnd::~EarlyEnd() {
  (void)::eventfd_write(over_.get(), 1);  // there is room for many
  thread_.join();
}

void EarlyEnd::watch() const {
  for (;;) {
    pollfd places[] = {{over_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(places, std::size(places), -1) < 0) continue;
    if (places[0].revents) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) end_by(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace varve::daemon
