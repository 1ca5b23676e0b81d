// A fault of the program that is found in time: writing ends at once, and what was acknowledged before is there after the next mount.
#include "base/invariant.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::test {
namespace {

class BrokenInvariant : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(device_, {}).ok());
    fixture_.options().background = GetParam();
    ASSERT_TRUE(fixture_.mount().ok());
  }
  Result<Ino> synced_file(const std::string& path, std::string_view text) {
    const fs::Attr made = TRY(fixture_.make(path, S_IFREG | 0644));
    TRY(fixture_.write(made.ino, 0, std::as_bytes(std::span(text))));
    TRY(fixture_.call([&](fs::Operation& operation) { return fixture_.fs().sync(operation); }));
    return made.ino;
  }
  std::string text_of(const std::string& path) {
    const auto ino = fixture_.resolve(path);
    if (!ino.ok()) return ino.error().message();
    const auto bytes = fixture_.read(*ino, 0, 100);
    return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : bytes.error().message();
  }

  io::MemDevice device_{64 << 20};
  ManualClock clock_;
  SeededRandom random_{1};
  FsFixture fixture_{device_, test_options(clock_, random_)};
};

INSTANTIATE_TEST_SUITE_P(Threads, BrokenInvariant, ::testing::Values(false, true));

TEST_P(BrokenInvariant, EndsWritingAndLosesNothingThatWasAcknowledged) {
  const auto kept = synced_file("/kept", "acknowledged");
  ASSERT_TRUE(kept.ok());
  const auto open = fixture_.make("/open", S_IFREG | 0644);
  ASSERT_TRUE(open.ok());
  const int one = 1;
  EXPECT_FALSE(INVARIANT(one == 2));

  EXPECT_TRUE(fixture_.write(open->ino, 0, std::as_bytes(std::span("x", 1))).fails_with(Errc::read_only));
  EXPECT_FALSE(fixture_.call([&](fs::Operation& operation) { return fixture_.fs().sync(operation); }).ok());
  EXPECT_EQ(text_of("/kept"), "acknowledged") << "reading goes on";
  const fs::FilesystemStatus status = fixture_.fs().status();
  EXPECT_TRUE(status.read_only);
  EXPECT_THAT(status.read_only_reason, ::testing::HasSubstr("\"one == 2\" does not hold"));
  EXPECT_FALSE(fixture_.unmount().ok());

  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(text_of("/kept"), "acknowledged");
  EXPECT_TRUE(fixture_.unmount().ok());
}

// An operation that waits for a checkpoint hears that none comes.
TEST_P(BrokenInvariant, EndsWaiting) {
  if (!GetParam()) GTEST_SKIP() << "without threads nothing waits";
  ASSERT_TRUE(synced_file("/file", "text").ok());
  std::thread breaking([] { EXPECT_FALSE(INVARIANT(sizeof(int) == 1)); });
  breaking.join();
  EXPECT_FALSE(fixture_.call([&](fs::Operation& operation) { return fixture_.fs().checkpoint(operation); }).ok());
  EXPECT_FALSE(fixture_.unmount().ok());
}

}  // namespace
}  // namespace varve::test
