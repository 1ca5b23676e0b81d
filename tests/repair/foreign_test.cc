// Devices that have been given to something else: what is left of an old filesystem is not believed unless somebody says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/checking.h"
#include "repair/fsck_image.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"

namespace varve::repair::test {
namespace {

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
  void expect_left_alone(const io::MemDevice& image, const std::string& why) {
    image_.save(image);
    for (const char* how : {"-n", "-p", "-y"}) {
      EXPECT_EQ(image_.fsck({how, "-f"}), fsck::kOperationalError) << how << ": " << image_.said();
      EXPECT_THAT(image_.said(), testing::AllOf(testing::HasSubstr(why), testing::HasSubstr("--search")));
      ASSERT_EQ(image_.bytes(), FsckImage::bytes_of(image)) << how;
    }
  }

  void expect_brought_back(const Seen& expected) {
    EXPECT_EQ(image_.fsck({"-y", "--search"}), fsck::kCorrected) << image_.said();
    EXPECT_EQ(image_.fsck({"-f", "--data"}), fsck::kClean) << image_.said();
    const Seen found = look_at(*image_.load());
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(found.paths, expected.paths);
  }

  FsckImage image_;
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
  EXPECT_EQ(FsckImage::bytes_of(*device), FsckImage::bytes_of(*image));
  expect_brought_back(expected);
}

INSTANTIATE_TEST_SUITE_P(All, Foreign, testing::Values(
  Newcomer{"swap space", 1024, 4086, "SWAPSPACE2"sv},
  Newcomer{"LUKS", 4096, 0, "LUKS\xBA\xBE\0\2"sv},
  Newcomer{"LVM", 2048, 0x200, "LABELONE"sv},
  Newcomer{"FAT", 512, 0x36, "FAT16   "sv},
  Newcomer{"ext4", 4096, 0x438, "\x53\xEF"sv, true},
  Newcomer{"Btrfs", 4096, 0x10040, "_BHRfS_M"sv, true},
  Newcomer{"ReFS", 512, 3, "ReFS\0\0\0\0"sv},
  Newcomer{"OCFS2", 8192, 0x2000, "OCFSV2"sv},
  Newcomer{"UFS", 4096, 0x1055C, "\x19\x01\x54\x19"sv},
  Newcomer{"Reiser4", 4096, 0x10000, "ReIsEr4"sv},
  Newcomer{"HFS", 1024, 0x400, "BD"sv},
  Newcomer{"HFSX", 1024, 0x400, "HX\0\5"sv},
  Newcomer{"ZFS", 16384, 0x4014, "\0\0\0\7version"sv},
  Newcomer{"RAID", 4096, (8 << 20) - (8 << 10), "\xFC\x4E\x2B\xA9\1\0\0\0"sv},  // its superblock is at the end
  Newcomer{"something unknown", 4096, 0x410, "\x7F\x13"sv},  // Minix
  Newcomer{"something unknown", 4096, 77, "x"sv, true},
  Newcomer{"GPT", 0, 0x200, "EFI PART"sv}),  // a boot sector's first bytes stay what they were
  [](const auto& test) { return std::to_string(test.index); });

// On small devices files have blocks where others put their marks: a torn superblock does not make an image of a CD of that.
TEST_F(Foreign, ContentOfFilesIsNone) {
  const auto image = populated_image(false);
  image->poke(0x8001, std::as_bytes(std::span("CD001"sv)));
  const Seen expected = look_at(*image->snapshot());
  ASSERT_EQ(expected.error, "");
  image->poke(1000, std::as_bytes(std::span("torn"sv)));
  const Seen found = look_at(*image->snapshot());
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.paths, expected.paths);
  image_.save(*image);
  EXPECT_EQ(image_.fsck({"-y"}), fsck::kCorrected) << image_.said();
}

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
  EXPECT_EQ(image_.fsck({"-y"}), fsck::kOperationalError);
  EXPECT_THAT(image_.said(), testing::HasSubstr("its trees are damaged"));
  expect_brought_back(expected);
}

}  // namespace
}  // namespace varve::repair::test
