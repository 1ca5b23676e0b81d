// Appends and small changes that are synced one by one: each changes a block that the last one has just written.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "log/parts_written.h"
#include "support/mounted_test.h"
#include "support/pattern.h"
#include "support/settings.h"

namespace varve::fs {
namespace {

class Appends : public test::MountedTest {
 protected:
  Ino make(const std::string& path) { return fixture_.make(path, S_IFREG | 0644)->ino; }
  void write_synced(Ino ino, std::uint64_t offset, std::span<const std::byte> data) {
    ASSERT_TRUE(fixture_.write(ino, offset, data).ok());
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().fsync(op, ino); }).ok());
  }
  std::uint64_t device_reads() { return fixture_.fs().status().device_reads; }
};

TEST_F(Appends, ReadNothingBack) {
  const Ino ino = make("/log");
  const auto content = test::pattern_bytes(1, 0, 20'000);
  write_synced(ino, 0, std::span(content).first(100));
  const std::uint64_t before = device_reads();
  for (std::size_t at = 100; at < content.size(); at += 100) write_synced(ino, at, std::span(content).subspan(at, 100));
  EXPECT_EQ(device_reads(), before);
  EXPECT_EQ(*fixture_.read(ino, 0, content.size()), content);
}

TEST_F(Appends, ToMoreFilesThanAreRemembered) {
  std::vector<Ino> files;
  for (std::size_t i = 0; i < log::PartsWritten::kBlocks + 10; ++i) files.push_back(make(fmt::format("/{}", i)));
  const auto content = test::pattern_bytes(2, 0, 500);
  for (std::size_t at = 0; at < content.size(); at += 100)
    for (const Ino ino : files) write_synced(ino, at, std::span(content).subspan(at, 100));
  for (const Ino ino : files) EXPECT_EQ(*fixture_.read(ino, 0, content.size()), content) << ino.v;
}

// Several versions of the same few blocks are remembered at once, and only the newest one may be found.
TEST_F(Appends, AndChangesOfTheSameBlocks) {
  const Ino ino = make("/database");
  std::vector<std::byte> content(4 * kBlockSize);
  write_synced(ino, 0, content);
  SeededRandom random(test::first_seed());
  for (unsigned i = 0; i < 300; ++i) {
    const std::size_t at = random.next() % (content.size() - 200), length = 1 + random.next() % 200;
    const auto part = test::pattern_bytes(i + 10, at, length);
    std::ranges::copy(part, content.begin() + static_cast<std::ptrdiff_t>(at));
    write_synced(ino, at, part);
    if (i % 50 == 49) {
      ASSERT_TRUE(fixture_.clean("copying").ok());
      ASSERT_TRUE(fixture_.checkpoint().ok());
    }
  }
  EXPECT_EQ(*fixture_.read(ino, 0, content.size()), content);
  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(*fixture_.read(ino, 0, content.size()), content);
}

}  // namespace
}  // namespace varve::fs
