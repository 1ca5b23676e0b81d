// Punching, truncating and seeking where what is asked for is not in memory.
#include <gtest/gtest.h>

#include "fs/engine.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::fs {
namespace {

using test::FsFixture;
using Bytes = std::vector<std::byte>;

class Shape : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }

  void remount() {
    ASSERT_TRUE(fixture_.unmount().ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }
  meta::Store& store() { return fixture_.fs().engine().store(); }
  Ino make_file(std::string_view path, const Bytes& content) {
    const Ino file = fixture_.make(path, S_IFREG | 0644)->ino;
    EXPECT_TRUE(fixture_.write(file, 0, content).ok());
    return file;
  }

  io::MemDevice device_{64u << 20};
  test::ManualClock clock_;
  SeededRandom random_{7};
  FsFixture fixture_{device_, test::test_options(clock_, random_)};
};

TEST_F(Shape, punching_across_the_end_changes_nothing_before_it_has_all_it_needs) {
  const Bytes content(4096, std::byte{'x'});
  const Ino file = make_file("/f", content);
  remount();
  ASSERT_TRUE(fixture_.write(file, 0, content).ok());  // now this block is known without the trees, its neighbour is not
  store().nodes().clear();
  Operation operation(fixture_.fs().engine(), {});
  const auto punch = [&] { return fixture_.fs().fallocate(operation, file, FallocateMode::punch_hole, 100, 5000); };
  for (Status punched = punch(); !punched.ok(); punched = punch()) {
    ASSERT_TRUE(punched.fails_with(Errc::would_block)) << punched.error().message();
    EXPECT_EQ(*fixture_.read(file, 0, 4096), content) << "that is still to come";
    operation.block();
  }
  Bytes punched(content.begin(), content.begin() + 100);
  punched.resize(4096);
  EXPECT_EQ(*fixture_.read(file, 0, 5000), punched);
}

}  // namespace
}  // namespace varve::fs
