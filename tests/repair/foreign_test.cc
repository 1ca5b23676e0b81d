// Devices that have been given to something else: what is left of an old filesystem is not believed unless somebody says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "check/checking.h"
#include "fsck/command.h"
#include "fsck/recovery.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "support/settings.h"

namespace varve::repair::test {
namespace {

namespace files = std::filesystem;
using namespace std::string_view_literals;

struct Newcomer {
  const char* name;
  std::uint64_t zeros;     // of this many bytes at the start
  std::size_t offset;      // of its mark
  std::string_view mark;
  bool end_too = false;    // wipes the last block as well
};

class Foreign : public testing::TestWithParam<Newcomer> {
 protected:
  Foreign() {
    char path[] = "/tmp/varve-foreign-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~Foreign() override { files::remove_all(folder_); }

  int fsck(std::vector<std::string> arguments) {
    const std::string image = folder_ / "image";
    arguments.insert(arguments.begin(), "fsck.varve");
    arguments.push_back(image);
    std::vector<const char*> argv;
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    said_.str("");
    return fsck::run(static_cast<int>(argv.size()), argv.data(), {said_, said_, false, fsck::recover});
  }

  std::vector<std::byte> saved() const { return bytes_of(**io::MemDevice::load(folder_ / "image")); }
  static std::vector<std::byte> bytes_of(const io::MemDevice& device) {
    std::vector<std::byte> bytes(device.geometry().size_bytes);
    device.peek(0, bytes);
    return bytes;
  }

  void expect_left_alone(const io::MemDevice& image, const std::string& why) {
    ASSERT_TRUE(image.save(folder_ / "image").ok());
    for (const char* how : {"-n", "-p", "-y"}) {
      EXPECT_EQ(fsck({how, "-f"}), fsck::kOperationalError) << how << ": " << said_.str();
      EXPECT_THAT(said_.str(), testing::AllOf(testing::HasSubstr(why), testing::HasSubstr("--search")));
      ASSERT_EQ(saved(), bytes_of(image)) << how;
    }
  }

  void expect_brought_back(const Seen& expected) {
    EXPECT_EQ(fsck({"-y", "--search"}), fsck::kCorrected) << said_.str();
    EXPECT_EQ(fsck({"-f", "--data"}), fsck::kClean) << said_.str();
    const Seen found = look_at(**io::MemDevice::load(folder_ / "image"));
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(found.paths, expected.paths);
  }

  files::path folder_;
  std::ostringstream said_;
};

TEST_P(Foreign, ContentIsLeftAloneUntilToldOtherwise) {
  const Newcomer& newcomer = GetParam();
  const auto image = populated_image(false);
  const Seen expected = look_at(*image->snapshot());
  image->poke(0, std::vector<std::byte>(newcomer.zeros));
  image->poke(newcomer.offset, std::as_bytes(std::span(newcomer.mark)));
  if (newcomer.end_too) wipe(*image, BlockAddr{image->geometry().blocks() - 1});

  expect_left_alone(*image, newcomer.name);
  const auto device = image->snapshot();
  const Seen mounted = look_at(*device);
  EXPECT_THAT(mounted.error, testing::AllOf(testing::HasSubstr(newcomer.name), testing::HasSubstr("fsck.varve --search")));
  EXPECT_EQ(bytes_of(*device), bytes_of(*image));
  expect_brought_back(expected);
}

INSTANTIATE_TEST_SUITE_P(All, Foreign, testing::Values(
  Newcomer{"swap space", 1024, 4086, "SWAPSPACE2"sv},
  Newcomer{"LUKS", 4096, 0, "LUKS\xBA\xBE\0\2"sv},
  Newcomer{"LVM", 2048, 0x200, "LABELONE"sv},
  Newcomer{"FAT", 512, 0x36, "FAT16   "sv},
  Newcomer{"ext4", 4096, 0x438, "\x53\xEF"sv, true},
  Newcomer{"Btrfs", 4096, 0x10040, "_BHRfS_M"sv, true},
  Newcomer{"GPT", 0, 0x200, "EFI PART"sv}),  // a boot sector's first bytes stay what they were
  [](const auto& test) { return std::to_string(test.index); });

// Nothing is known to be there, but no candidate is whole either: perhaps all of it belongs to the past.
TEST_F(Foreign, WithoutWholeTreesASuperblockIsNotTaken) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  const Seen expected = look_at(*image->snapshot());
  wipe(*image, BlockAddr{0});
  wipe(*image, BlockAddr{image->geometry().blocks() - 1});
  wipe(*image, node_of(builder, format::TreeId::reverse_map, 1));
  expect_left_alone(*image, "");
  EXPECT_EQ(fsck({"-y"}), fsck::kOperationalError);
  EXPECT_THAT(said_.str(), testing::HasSubstr("its trees are damaged"));
  expect_brought_back(expected);
}

}  // namespace
}  // namespace varve::repair::test
