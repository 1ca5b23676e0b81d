// Filesystems of a newer Varve that may be read but not written: a repair is writing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/checking.h"
#include "repair/fsck_image.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"

namespace varve::repair::test {
namespace {

void forbid_writing(format::Superblock& super) { super.features.ro_compat |= std::uint64_t{1} << 40; }

class Newer : public testing::Test {
 protected:
  void expect_refused(const io::MemDevice& image, const char* why) {
    image_.save(image);
    for (const char* how : {"-n", "-p", "-y"}) {
      EXPECT_EQ(image_.fsck({how, "-f"}), fsck::kOperationalError) << how << ": " << image_.said();
      EXPECT_THAT(image_.said(), testing::AllOf(testing::HasSubstr(image_.path()), testing::HasSubstr(why),
                                                testing::HasSubstr("newer Varve")));
      ASSERT_EQ(image_.bytes(), FsckImage::bytes_of(image)) << how;
    }
  }

  FsckImage image_;
};

// The engine refuses to replay it, which says nothing about the log.
TEST_F(Newer, ItsLogIsNotCut) {
  const auto image = populated_image(true);
  change_supers(*image, forbid_writing);
  expect_refused(*image, "feature bits 40");
  const auto replay = [](io::BlockDevice&, Tolerance) -> Status { return Errc::unknown_feature; };
  EXPECT_TRUE(repair(*populated_image(true), replay, {}).fails_with(Errc::unknown_feature));
}

TEST_F(Newer, ItsDamageIsNotRepaired) {
  ImageBuilder builder;
  check::test::fill(builder);
  builder.change_super = builder.change_image = forbid_writing;
  const auto image = builder.build();
  image_.save(*image);
  for (const char* how : {"-n", "-p", "-y"}) EXPECT_EQ(image_.fsck({how, "-f"}), fsck::kClean) << image_.said();
  EXPECT_EQ(image_.bytes(), FsckImage::bytes_of(*image));
  wipe(*image, node_of(builder, format::TreeId::reverse_map, 1));
  expect_refused(*image, "1 error");
}

}  // namespace
}  // namespace varve::repair::test
