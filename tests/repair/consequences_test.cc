// What fsck says about files: which a repair leaves older, or without something, or without a name; and nothing about those that are as
// they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "check/checking.h"
#include "fsck/recovery.h"
#include "io/overlay_device.h"
#include "repair/fsck_image.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "repair/tree_reader.h"
#include "support/pattern.h"

namespace varve::repair::test {
namespace {

using testing::HasSubstr;
using testing::Not;

format::Superblock super_of(io::BlockDevice& device) { return check::check(device, {})->super; }

LeafPlan tree_of(io::BlockDevice& device) {
  LeafPlan plan;
  const format::Superblock super = super_of(device);
  TreeReader(device, super, {super.inode_file, super.inode_file_level, format::TreeId::inode_file}, plan).run();
  return plan;
}

// Empty, or a path of which nothing is said although it is not what it was.
std::string untold(const Seen& before, const Seen& after, const std::string& said) {
  std::set<Ino> named;  // a file of many names by one of them
  for (const auto& [path, ino] : before.paths)
    if (said.find("(" + path.substr(1) + ")") != std::string::npos) named.insert(ino);
  for (const auto& [path, ino] : before.paths) {
    const std::string last = path.substr(path.rfind('/') + 1);
    const auto now = after.paths.find(path);
    const bool same = now != after.paths.end() && now->second == ino && before.inodes.at(ino) == after.inodes.at(ino);
    if (same) continue;
    const auto says = [&](const std::string& words) { return said.find(words) != std::string::npos; };
    if (!named.contains(ino) && !says("\"" + last + "\"") && !says(fmt::format("(lost+found/#{})", ino))) return path;
  }
  return "";
}

std::string summary_of(const std::string& said) {
  const std::size_t at = said.find(" repair:\n");
  return at == std::string::npos ? "" : said.substr(at);
}

class Consequences : public testing::Test {
 protected:
  // What fsck -y says; -n has said the same about files before.
  std::string repaired(const io::MemDevice& device) {
    file.save(device);
    EXPECT_EQ(file.fsck({"-n"}), 4) << file.said();
    const std::string dry = summary_of(file.said());
    EXPECT_EQ(file.fsck({"-y"}), 1) << file.said();
    EXPECT_EQ(summary_of(file.said()), dry);
    for (const char* word : {"kind ", "18446744073709551615", " offset "}) EXPECT_THAT(file.said(), Not(HasSubstr(word)));
    return file.said();
  }

  const std::unique_ptr<io::MemDevice> image = populated_image(false);
  const Seen before = look_at(*image->snapshot());
  FsckImage file;
};

TEST_F(Consequences, WhereOnlyTheWayToTheFilesIsLostNoFileIsNamed) {
  const format::Superblock super = super_of(*image);
  ASSERT_GT(super.inode_file_level, 0);
  for (const bool maps : {false, true}) {
    const auto copy = image->snapshot();
    wipe(*copy, super.inode_file.address);
    if (maps) wipe(*copy, super.reverse_map.address);
    if (maps) wipe(*copy, super.free_map.address);
    const std::string said = repaired(*copy);
    for (const char* code : {"R813", "R814", "R817", "R819"}) EXPECT_THAT(said, Not(HasSubstr(code)));
    EXPECT_EQ(said.find("R818") != std::string::npos, maps) << said;
    const Seen after = look_at(*file.load());
    EXPECT_EQ(after.paths, before.paths);
    for (const auto& [ino, seen] : before.inodes) EXPECT_TRUE(seen == after.inodes.at(ino)) << ino.v;
  }
}

TEST_F(Consequences, EachFileThatIsNotWhatItWasIsNamed) {
  std::uint64_t older = 0, kept = 0, changed = 0;
  for (const LeafPiece& leaf : tree_of(*image).leaves) {
    const auto copy = image->snapshot();
    wipe(*copy, leaf.address);
    const std::string said = repaired(*copy);
    const Seen after = look_at(*file.load());
    EXPECT_EQ(untold(before, after, said), "") << said;
    for (const auto& [ino, seen] : before.inodes) {
      if (said.find(fmt::format("R819 inode {} (", ino)) == std::string::npos) continue;
      ++kept;
      const auto& now = after.inodes.at(ino).blocks;
      for (std::size_t i = 0; i < std::min(seen.blocks.size(), now.size()); ++i) {
        const std::size_t both = std::min(seen.blocks[i].size(), now[i].size());  // the end is that of an older size
        EXPECT_TRUE(std::equal(now[i].begin(), now[i].begin() + static_cast<std::ptrdiff_t>(both), seen.blocks[i].begin())) << ino.v;
      }
    }
    older += said.find(" may be older than ") != std::string::npos;
    const bool differs = after.paths != before.paths;
    changed += differs;
    EXPECT_TRUE(!differs || !summary_of(said).empty()) << said;
  }
  EXPECT_GT(older, 0U);
  EXPECT_GT(kept, 0U);
  EXPECT_GT(changed, 0U);
}

// The newest leaf of all, of which older copies are about.
TEST_F(Consequences, AreSummedUpInTheLastLines) {
  const LeafPlan tree = tree_of(*image);
  const auto copy = image->snapshot();
  wipe(*copy, tree.leaves.back().address);
  const std::string said = repaired(*copy);
  EXPECT_THAT(said, testing::ContainsRegex("1 error found and repaired\nAfter this repair:\n  [0-9]+ (file or dir|files or dir|name)"));
}

// One file of several leaves, of which older copies are about.
class OldCopies : public testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 1900;  // so few that no checkpoint comes in between

  void SetUp() override {
    ASSERT_TRUE(varve::test::make_image(device, {}).ok());
    ASSERT_TRUE(fixture.mount().ok());
    file = fixture.make("/file", 0100644)->ino;
  }
  void write(std::uint64_t seed, std::uint64_t block, std::uint64_t blocks) {
    const auto bytes = varve::test::pattern_bytes(seed, block * kBlockSize, blocks * kBlockSize);
    ASSERT_TRUE(fixture.write(file, block * kBlockSize, bytes).ok());
  }
  LeafPiece leaf_of(std::uint64_t block) {
    for (const LeafPiece& leaf : tree_of(device).leaves)
      if (leaf.range.contains({file, format::ItemKind::extent, block})) return leaf;
    ADD_FAILURE() << "there is none";
    return {};
  }
  ActionLog expect_repaired() {
    auto done = repair(device, fsck::recover, {});
    EXPECT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(done->errors_left(), 0U) << check::test::lines(done->after);
    EXPECT_TRUE(fixture.mount().ok());
    return done->actions;
  }
  void expect_content(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t block = from; block < to; ++block)
      ASSERT_EQ(*fixture.read(file, block * kBlockSize, kBlockSize), varve::test::pattern_bytes(1, block * kBlockSize, kBlockSize))
          << block;
  }

  io::MemDevice device{96u << 20};
  varve::test::ManualClock clock;
  SeededRandom random{1};
  varve::test::FsFixture fixture{device, varve::test::test_options(clock, random)};
  Ino file;
};

// It was set aside as a whole and then written: what stood there before reaches over all of it.
TEST_F(OldCopies, OneThatReachedFarTakesNothingFromWhatIsThere) {
  ASSERT_TRUE(fixture.call([&](fs::Operation& op) {
    return fixture.fs().fallocate(op, file, fs::FallocateMode::allocate, 0, kBlocks * kBlockSize);
  }).ok());
  ASSERT_TRUE(fixture.checkpoint().ok());
  write(1, 0, kBlocks);
  ASSERT_TRUE(fixture.unmount().ok());
  const LeafPiece first = leaf_of(0);
  ASSERT_EQ(first.range.upper.ino, file) << "the file has several leaves";
  ASSERT_EQ(first.range.upper.kind, format::ItemKind::extent);
  ASSERT_LT(first.range.upper.offset, kBlocks);
  wipe(device, first.address);
  EXPECT_GT(expect_repaired().count(ActionCode::old_copy_used), 0U);
  expect_content(first.range.upper.offset, kBlocks);
}

// But of its last item all is taken where nothing knows better.
TEST_F(OldCopies, OneIsGoodForAllThatItHas) {
  constexpr std::uint64_t kOther = 900;
  write(1, 0, kBlocks);
  ASSERT_TRUE(fixture.checkpoint().ok());
  write(2, kOther, 1);
  ASSERT_TRUE(fixture.unmount().ok());
  wipe(device, leaf_of(kOther).address);
  EXPECT_GT(expect_repaired().count(ActionCode::old_copy_used), 0U);
  expect_content(0, kOther);
  expect_content(kOther + 1, kBlocks);
}

}  // namespace
}  // namespace varve::repair::test
