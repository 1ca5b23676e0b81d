// Where a daemon's messages go that nobody has given a place.
#include "daemon/log_output.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "daemon/late_file_sink.h"

namespace varve::fuse {
namespace {

TEST(LogOutput, NoTwoDirectoriesShareAFile) {
  std::set<std::string> names;
  for (const char* const directory : {"/", "/a/b-c", "/a-b/c", "/a/b/c", "/a+b/c", "/a%2Bb/c", "/+"})
    EXPECT_TRUE(names.insert(daemon::log_name(directory)).second) << directory;
  EXPECT_EQ(daemon::log_name("/mnt/my-disk"), "mnt+my-disk.log");
}

TEST(LogOutput, TheFileIsMadeWithTheFirstMessage) {
  const std::string path = std::filesystem::temp_directory_path() / ("varve-log." + std::to_string(::getpid()));
  spdlog::logger log("test", std::make_shared<daemon::LateFileSink>(path));
  log.flush();
  EXPECT_FALSE(std::filesystem::exists(path));
  log.info("something has happened");
  log.flush();
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  EXPECT_NE(line.find("something has happened"), line.npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace varve::fuse
