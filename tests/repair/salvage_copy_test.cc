// What salvage does with the host's filesystem: everything that belongs to a file, and files that the host does not take.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/mem_device.h"
#include "support/fs_fixture.h"
#include "varve/command.h"

namespace varve::repair::test {
namespace {

namespace files = std::filesystem;
using namespace varve::test;

constexpr Timestamp kLongAgo{1'000'000'000, 5};

class SalvageCopy : public testing::Test {
 protected:
  SalvageCopy() {
    char path[] = "/tmp/varve-salvage-copy-XXXXXX";
    folder_ = mkdtemp(path);
    EXPECT_TRUE(make_image(device_, {}).ok());
    EXPECT_TRUE(fixture_.mount().ok());
  }
  ~SalvageCopy() override { files::remove_all(folder_); }

  Ino make(const char* name, std::uint32_t mode, std::uint64_t bytes = 0, Ino where = kRootIno) {
    const auto made = fixture_.call([&](fs::Operation& op) {
      fs::NewNode node;
      node.mode = mode;
      if (S_ISLNK(mode)) node.symlink = "nowhere";
      return fixture_.fs().make(op, where, name, node);
    });
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE(fixture_.write(made->ino, 0, std::vector<std::byte>(bytes, std::byte{7})).ok() || bytes == 0);
    return made->ino;
  }

  void own(Ino ino, std::uint32_t uid) {
    fs::AttrChange change;
    change.uid = change.gid = uid;
    change.atime = change.mtime = kLongAgo;
    EXPECT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setattr(op, ino, change); }).ok());
  }

  // No file of the host may become larger than `most` bytes meanwhile. Not as JSON: the text.
  nlohmann::json salvage(rlim_t most = RLIM_INFINITY, bool as_json = true) {
    EXPECT_TRUE(fixture_.unmount().ok());
    EXPECT_TRUE(device_.save(folder_ / "image").ok());
    std::ostringstream out, err;
    std::istringstream in;
    const std::string source = folder_ / "image", target = folder_ / "out";
    std::vector<const char*> argv{"varve", "salvage", source.c_str(), target.c_str()};
    if (as_json) argv.push_back("--json");
    rlimit old{};
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    const rlimit limit{std::min(most, old.rlim_cur), old.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(tool::run(static_cast<int>(argv.size()), argv.data(), {in, out, err}), most == RLIM_INFINITY ? 0 : 1) << err.str();
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    if (!as_json) return out.str();
    return out.str().empty() ? nlohmann::json{} : nlohmann::json::parse(out.str());
  }

  struct stat seen(const char* name) const {
    struct stat status {};
    EXPECT_EQ(::lstat((folder_ / "out" / name).c_str(), &status), 0) << name;
    return status;
  }

  files::path folder_;
  io::MemDevice device_{16 << 20};
  ManualClock clock_;
  SeededRandom random_{3};
  FsFixture fixture_{device_, test_options(clock_, random_)};
};

TEST_F(SalvageCopy, SpecialFilesAndSymlinksKeepModeOwnerAndTimes) {
  own(make("pipe", S_IFIFO | 0666), 1234);
  own(make("link", S_IFLNK | 0777), 1234);
  const mode_t mask = ::umask(022);
  const auto report = salvage();
  ::umask(mask);
  EXPECT_EQ(report["losses"].size(), 0U) << report.dump(1);
  EXPECT_EQ(seen("pipe").st_mode & 07777, 0666U);
  for (const char* name : {"pipe", "link"}) {
    EXPECT_EQ(seen(name).st_mtim.tv_sec, kLongAgo.seconds) << name;
    EXPECT_EQ(seen(name).st_uid, ::geteuid() == 0 ? 1234U : ::geteuid()) << name;
  }
}

TEST_F(SalvageCopy, MoreLevelsThanFilesMayBeOpen) {
  constexpr unsigned kLevels = 300;
  Ino at = kRootIno;
  for (unsigned i = 0; i < kLevels; ++i) {
    at = make("d", S_IFDIR | 0500, 0, at);
    make("e", S_IFREG | 0600, 10, at);  // behind what has the level below
  }
  own(at, 1234);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit limit{100, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto report = salvage();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(report["losses"].size(), 0U) << report.dump(1);
  EXPECT_EQ(report["loss_count"], 0);
  EXPECT_EQ(report["repair_count"], 0);
  EXPECT_EQ(report["directories"], kLevels);
  EXPECT_EQ(report["files"], kLevels);
  std::string deepest;
  for (unsigned i = 0; i < kLevels; ++i) deepest += "d/";
  EXPECT_EQ(seen((deepest + "e").c_str()).st_size, 10);
  EXPECT_EQ(seen(deepest.c_str()).st_mode & 07777, 0500U);
  EXPECT_EQ(seen(deepest.c_str()).st_mtim.tv_sec, kLongAgo.seconds);
  for (std::string up = deepest; !up.empty(); up.resize(up.size() - 2)) ::chmod((folder_ / "out" / up).c_str(), 0700);
}

TEST_F(SalvageCopy, TheRootIsAsItWas) {
  own(kRootIno, 1234);
  fs::AttrChange change;
  change.mode = 0710;
  EXPECT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setattr(op, kRootIno, change); }).ok());
  const auto value = std::as_bytes(std::span("kept", 4));
  EXPECT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setxattr(op, kRootIno, "user.note", value, 0); }).ok());
  const auto report = salvage();
  EXPECT_EQ(seen("").st_mode & 07777, 0710U);
  EXPECT_EQ(seen("").st_uid, ::geteuid() == 0 ? 1234U : ::geteuid());
  EXPECT_EQ(seen("").st_mtim.tv_sec, kLongAgo.seconds);
  std::array<std::byte, 64> found{};
  if (report["losses"].empty()) EXPECT_EQ(::getxattr((folder_ / "out").c_str(), "user.note", found.data(), found.size()), 4);
  else EXPECT_EQ(report["losses"][0]["path"], ".") << report.dump(1);  // /tmp may have none
}

TEST_F(SalvageCopy, NamesAreShownWithoutControlCharacters) {
  make("\x1b[2J", S_IFREG | 0600, 3 << 20);
  const std::string said = salvage(1 << 20, false).get<std::string>();
  EXPECT_NE(said.find("\\x1b[2J: "), std::string::npos) << said;
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

TEST_F(SalvageCopy, CapabilitiesSurviveTheChangeOfTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  constexpr unsigned char kCapabilities[20] = {1, 0, 0, 2, 0, 0x20};  // version 2, effective: CAP_NET_RAW
  const auto value = std::as_bytes(std::span(kCapabilities));
  const files::path probe = folder_ / "probe";
  EXPECT_EQ(::mknod(probe.c_str(), S_IFREG | 0755, 0), 0);
  if (::setxattr(probe.c_str(), "security.capability", value.data(), value.size(), 0) != 0) GTEST_SKIP() << "not on this filesystem";
  const Ino ino = make("program", S_IFREG | 0755, 100);
  own(ino, 1234);
  EXPECT_TRUE(fixture_.call([&](fs::Operation& op) {
    return fixture_.fs().setxattr(op, ino, "security.capability", value, 0);
  }).ok());
  const auto report = salvage();
  EXPECT_EQ(report["losses"].size(), 0U) << report.dump(1);
  EXPECT_EQ(seen("program").st_uid, 1234U);
  std::array<std::byte, 64> found{};
  EXPECT_EQ(::getxattr((folder_ / "out/program").c_str(), "security.capability", found.data(), found.size()), 20);
}

TEST_F(SalvageCopy, AFileTooLargeForTheHostIsOnlyItsOwnLoss) {
  for (const char* name : {"before", "after"}) make(name, S_IFREG | 0644, 5000);
  make("large", S_IFREG | 0644, 3 << 20);
  make("last", S_IFREG | 0644, 6000);
  const auto report = salvage(2 << 20);
  EXPECT_EQ(report["files"], 4);
  for (const auto& loss : report["losses"]) EXPECT_EQ(loss["path"], "large");
  EXPECT_GT(report["losses"].size(), 0U);
  EXPECT_EQ(seen("large").st_size, 2 << 20);
  EXPECT_EQ(seen("last").st_size, 6000);
}

}  // namespace
}  // namespace varve::repair::test
