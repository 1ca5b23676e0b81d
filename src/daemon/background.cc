#include "daemon/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/descriptor.h"

namespace varve::daemon {

namespace {

constexpr char kReady = '+';
constexpr char kFailed = '-';  // followed by the message

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return;  // the parent is gone
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
}

void leave_terminal() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
}

}  // namespace

bool read_some(int fd, std::string& text) {
  char part[512];
  ssize_t got;
  do got = ::read(fd, part, sizeof part);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  text.append(part, static_cast<std::size_t>(got));
  return true;
}

Result<Background> Background::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error(errc_from_errno(errno), "cannot make a pipe");
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    return Error(errc_from_errno(error), fmt::format("cannot go into the background: {}", std::strerror(error)));
  }
  if (child > 0) {
    ::close(ends[1]);
    return Background(true, ends[0], child);
  }
  // What the caller has open, as a lock or a file of another filesystem, must not stay so for as long as the mount.
  close_others(STDERR_FILENO + 1, static_cast<unsigned>(ends[1]));
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a mount that somebody interrupts does not come about later
  const pid_t now = ::getppid();       // of a parent that had ended before no signal comes; 0: it is in another PID namespace
  if (now != parent && now != 0) ::_exit(1);
  ::signal(SIGPIPE, SIG_IGN);
  return Background(false, ends[1], 0);
}

Background::Background(Background&& other) noexcept
    : is_parent_(other.is_parent_), pipe_(std::exchange(other.pipe_, -1)), child_(other.child_) {}

Background::~Background() {
  if (pipe_ >= 0) ::close(pipe_);
}

Status Background::wait() {
  std::string said;
  while (read_some(pipe_, said))
    if (said[0] == kReady) return {};
  int status = 0;
  ::waitpid(child_, &status, 0);
  if (!said.empty()) return Error(Errc::io, said.substr(1));
  if (WIFSIGNALED(status))
    return Error(Errc::io, fmt::format("the daemon was ended by signal {} ({})", WTERMSIG(status),
                                       ::strsignal(WTERMSIG(status))));
  return Error(Errc::io, "the daemon ended without saying why");
}

void Background::ready() {
  if (::chdir("/") != 0) return failed(Error(Errc::io, "cannot change to the root directory"));
  leave_terminal();
  ::prctl(PR_SET_PDEATHSIG, 0);
  write_all(pipe_, {kReady});
  ::close(std::exchange(pipe_, -1));
}

void Background::failed(const Error& error) {
  write_all(pipe_, kFailed + error.message());
  ::close(std::exchange(pipe_, -1));
}

}  // namespace varve::daemon
