// What block devices say of themselves in /sys, and what is believed.
#include "io/rotational.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace varve::io {
namespace {

namespace fs = std::filesystem;

class RotationalTest : public testing::Test {
 protected:
  RotationalTest() {
    std::string name = (fs::temp_directory_path() / "rotational.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~RotationalTest() override { fs::remove_all(root_); }

  fs::path device(const std::string& path, int rotational) {
    const fs::path directory = root_ / "devices" / path;
    fs::create_directories(directory / "queue");
    std::ofstream(directory / "queue/rotational") << rotational << '\n';
    return link_to(directory);
  }
  // As /sys/dev/block has them.
  fs::path link_to(const fs::path& directory) {
    fs::create_directories(root_ / "dev");
    const fs::path link = root_ / "dev" / std::to_string(links_++);
    fs::create_symlink(directory, link);
    return link;
  }
  static void put_over(const fs::path& upper, const fs::path& lower) {
    const fs::path slaves = fs::canonical(upper) / "slaves";
    fs::create_directories(slaves);
    fs::create_symlink(fs::canonical(lower), slaves / fs::canonical(lower).filename());
  }

  fs::path root_;
  int links_ = 0;
};

TEST_F(RotationalTest, ADiskAndItsPartitionSeek) {
  EXPECT_TRUE(is_rotational(device("pci0/ata1/block/sda", 1)));
  fs::create_directories(root_ / "devices/pci0/ata1/block/sda/sda1");
  EXPECT_TRUE(is_rotational(link_to(root_ / "devices/pci0/ata1/block/sda/sda1")));
  EXPECT_FALSE(is_rotational(device("pci0/nvme/block/nvme0n1", 0)));
  EXPECT_FALSE(is_rotational(root_ / "dev/none"));
}

TEST_F(RotationalTest, DisksOfVirtualMachinesSayNothing) {
  EXPECT_FALSE(is_rotational(device("pci0/virtio1/block/vda", 1)));
  fs::create_directories(root_ / "devices/pci0/virtio1/block/vda/vda2");
  EXPECT_FALSE(is_rotational(link_to(root_ / "devices/pci0/virtio1/block/vda/vda2")));
}

TEST_F(RotationalTest, AMappedDeviceHasItFromThoseBelow) {
  const fs::path disk = device("pci0/ata1/block/sda", 1), virtual_disk = device("pci0/virtio1/block/vda", 1);
  const fs::path over_virtual = device("virtual/block/dm-0", 1), over_both = device("virtual/block/dm-1", 1);
  put_over(over_virtual, virtual_disk);
  put_over(over_both, over_virtual);
  EXPECT_FALSE(is_rotational(over_virtual));
  EXPECT_FALSE(is_rotational(over_both));
  const fs::path partition = fs::canonical(over_virtual) / "dm-0p1";
  fs::create_directories(partition);
  std::ofstream(partition / "partition") << "1\n";
  EXPECT_FALSE(is_rotational(link_to(partition)));
  put_over(over_both, disk);
  EXPECT_TRUE(is_rotational(over_both));
  EXPECT_TRUE(is_rotational(device("virtual/block/loop0", 1)));
}

}  // namespace
}  // namespace varve::io
