#include "varve/snapshots/successor.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace varve::tool {

namespace {

// What ends the one process by the terminal would end the other as well.
void ignore_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) (void)std::signal(signal, SIG_IGN);
}

constexpr int kMeanwhileMs = 15'000;

bool ended_without_a_word(int reading, const std::function<void()>& meanwhile) {
  pollfd word{reading, POLLIN, 0};
  for (int ready = 0; meanwhile && ready <= 0;)
    if ((ready = ::poll(&word, 1, kMeanwhileMs)) == 0) meanwhile();
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(reading, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 0;
}

}  // namespace

Successor::Successor(const std::function<void()>& task, const std::function<void()>& meanwhile) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  Descriptor reading(ends[0]);
  alive_ = Descriptor(ends[1]);
  process_ = ::fork();
  if (process_ != 0) return;
  ignore_signals();
  alive_ = Descriptor();
  // A program that reads the other's output would wait for this process as well.
  for (const int output : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(output);
  if (ended_without_a_word(reading.get(), meanwhile)) task();
  ::_exit(0);
}

void Successor::release() {
  if (process_ <= 0) return;
  while (::send(alive_.get(), "", 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {  // it may have been killed
  }
  alive_ = Descriptor();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

}  // namespace varve::tool
