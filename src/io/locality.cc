#include "io/locality.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/mounts.h"
#include "io/block_folder.h"

namespace varve::io {

namespace {

// One kernel at a time mounts these.
constexpr std::array<std::string_view, 20> kLocalTypes = {"ext2", "ext3",  "ext4",    "xfs",    "btrfs",    "f2fs",     "tmpfs",
                                                          "ramfs", "overlay", "vfat", "exfat", "ntfs3",    "zfs",      "bcachefs",
                                                          "jfs",  "reiserfs", "nilfs2", "udf", "hfsplus", "fuseblk"};

// Parts of a device's place in sysfs behind which another machine may use it as well.
constexpr std::array<std::string_view, 10> kSharedPlaces = {"/session", "/rport-", "/virtio", "/vbd-", "/nvme-fabrics",
                                                            "/nvme-subsystem", "/block/nbd", "/block/drbd", "/devices/rbd", "/vmbus"};

std::string type_of_mount(std::uint64_t id) {
  const std::string wanted = std::to_string(id);
  for (const Mount& mount : mounts())
    if (mount.id == wanted) return mount.type;
  return "";
}

// In a chroot the mount that its root is a part of is in no table.
bool is_local_magic(const std::string& path) {
  constexpr std::array<std::uint32_t, 7> kLocal = {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x794C7630, 0x2FC12FC1};
  struct statfs facts {};
  if (::statfs(path.c_str(), &facts) != 0) return false;
  return std::ranges::find(kLocal, static_cast<std::uint32_t>(facts.f_type)) != kLocal.end();
}

bool is_local_file(const Layer& file) {
  struct statx facts {};
  if (::statx(AT_FDCWD, file.name.c_str(), 0, STATX_INO | STATX_MNT_ID, &facts) != 0) return false;
  if (!(facts.stx_mask & STATX_MNT_ID)) return false;
  if (makedev(facts.stx_dev_major, facts.stx_dev_minor) != file.device || facts.stx_ino != file.inode) return false;
  const std::string type = type_of_mount(facts.stx_mnt_id);
  return type.empty() ? is_local_magic(file.name) : std::ranges::find(kLocalTypes, type) != kLocalTypes.end();
}

bool is_local_device(const Layer& device) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(block_folder(device.device), error);
  if (error) return false;
  const std::string place = folder.string() + "/";
  return std::ranges::none_of(kSharedPlaces, [&](std::string_view part) { return place.find(part) != std::string::npos; });
}

}  // namespace

bool is_local(const Stack& stack) {
  return stack.complete && std::ranges::all_of(stack.layers, [](const Layer& layer) {
    return layer.is_block_device() ? is_local_device(layer) : is_local_file(layer);
  });
}

}  // namespace varve::io
