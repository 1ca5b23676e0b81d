// What arrives at a socket in place of the journal's.
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "daemon/journal_sink.h"

namespace varve::fuse {
namespace {

class Journal : public ::testing::Test {
 protected:
  Journal() {
    char path[] = "/tmp/varve-journal-XXXXXX";
    folder_ = ::mkdtemp(path);
    path_ = folder_ / "socket";
    listen();
  }
  ~Journal() override {
    ::close(socket_);
    std::filesystem::remove_all(folder_);
  }

  void listen() {
    std::filesystem::remove(path_);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  std::string received() {
    std::string text(1 << 20, 0);
    const ssize_t got = ::recv(socket_, text.data(), text.size(), 0);
    return got < 0 ? "" : text.substr(0, static_cast<std::size_t>(got));
  }
  spdlog::logger logger() {
    return {"varve", std::make_shared<daemon::JournalSink>(path_.string(), daemon::JournalSink::Fields{{"VARVE_DIRECTORY", "/mnt/a\nb"}})};
  }

  std::filesystem::path folder_, path_;
  int socket_ = -1;
};

TEST_F(Journal, GetsMessagesWithFields) {
  logger().warn("{} is full", "it");
  const std::string text = received();
  EXPECT_NE(text.find("\nPRIORITY=4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nMESSAGE=it is full\n"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("SYSLOG_IDENTIFIER=varve\n")) << text;
  const std::string directory("VARVE_DIRECTORY\n\x08\0\0\0\0\0\0\0/mnt/a\nb\n", 33);
  EXPECT_NE(text.find(directory), std::string::npos) << "a value of two lines has its length before it";
  EXPECT_EQ(received(), "") << "a datagram for each message";
}

TEST_F(Journal, ThatIsGoneLosesMessagesAndTheNextOneSaysSo) {
  auto log = logger();
  ::close(socket_);
  log.error("first");
  log.error("second");
  listen();
  log.error("third");
  EXPECT_NE(received().find("MESSAGE=third (2 messages before this one were lost)\n"), std::string::npos);
  log.error("fourth");
  EXPECT_NE(received().find("MESSAGE=fourth\n"), std::string::npos);
}

TEST_F(Journal, ThatDoesNotReadMakesNobodyWait) {
  auto log = logger();
  for (int i = 0; i < 100000; ++i) log.info("a line for a reader that sleeps");
  int read = 0;
  while (!received().empty()) ++read;
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 100000);
}

}  // namespace
}  // namespace varve::fuse
