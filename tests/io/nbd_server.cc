#include "io/nbd_server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace varve::io::test {

bool NbdServer::is_there() {
#ifdef VARVE_HAS_NBD
  static const bool found = std::system("nbdkit --version >/dev/null 2>&1") == 0;
  return found;
#else
  return false;
#endif
}

NbdServer::NbdServer(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  std::string folder = "/tmp/varve-nbd-XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  folder_ = folder;
  uri_ = "nbd+unix:///?socket=" + folder_ + "/socket";
  start();
}

NbdServer::~NbdServer() {
  kill();
  std::filesystem::remove_all(folder_);
}

void NbdServer::start() {
  const std::string socket = folder_ + "/socket", ready = folder_ + "/ready";
  ::unlink(socket.c_str());
  ::unlink(ready.c_str());
  std::vector<std::string> words = {"nbdkit", "-f", "-U", socket, "-P", ready};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::execvp(raw[0], raw.data());
    ::_exit(127);
  }
  for (int looks = 0; ::access(ready.c_str(), F_OK) != 0; ++looks) {
    ASSERT_LT(looks, 60'000) << "nbdkit does not start";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // between two looks
  }
}

void NbdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

// One that is to stop has stopped, with all of its threads, when this returns.
void NbdServer::signal(int number) const {
  ::kill(pid_, number);
  if (number == SIGSTOP) ::waitpid(pid_, nullptr, WUNTRACED);
}

}  // namespace varve::io::test
