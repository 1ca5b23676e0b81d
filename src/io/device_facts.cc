#include "io/device_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/errc.h"
#include "base/mounts.h"
#include "io/block_folder.h"
#include "io/rotational.h"

#ifndef STATX_DIOALIGN
#define VARVE_NO_DIOALIGN
#endif

namespace varve::io {

namespace {

std::optional<std::uint64_t> queue_attribute(dev_t device, const char* attribute) {
  return block_attribute(block_folder(device), fmt::format("queue/{}", attribute));
}

// Where a partition begins on its disk, in bytes.
std::uint64_t start_of(dev_t device) {
  std::ifstream file(block_folder(device) / "start");
  std::uint64_t sectors = 0;
  return file >> sectors ? sectors * 512 : 0;
}

// Cards and eMMC tell it; shingled disks tell their zones.
std::uint64_t erase_unit_of(dev_t device) {
  constexpr std::uint64_t kSector = 512;
  if (const auto bytes = block_attribute(block_folder(device), "device/preferred_erase_size").value_or(0)) return bytes;
  return queue_attribute(device, "chunk_sectors").value_or(0) * kSector;
}

std::uint32_t discard_unit_of(dev_t device) {
  const std::uint64_t bytes = queue_attribute(device, "discard_granularity").value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes, kBlockSize, 1u << 30));
}

// Longer ones are divided. That may block, so io_uring gives them to a thread, where those that come after them overtake them.
std::uint32_t request_bytes_of(dev_t device) {
  constexpr std::uint64_t kLeast = 64u << 10, kMost = 1u << 20, kPage = 4096;
  const std::uint64_t bytes = queue_attribute(device, "max_sectors_kb").value_or(kMost >> 10) << 10;
  const std::uint64_t pieces = queue_attribute(device, "max_segments").value_or(kMost / kPage);
  return static_cast<std::uint32_t>(std::clamp(std::min(bytes, pieces * kPage) / kBlockSize * kBlockSize, kLeast, kMost));
}

Result<Geometry> block_device_geometry(int fd, dev_t device, const std::string& path) {
  Geometry geometry;
  geometry.is_block_device = true;
  std::uint64_t bytes = 0;
  unsigned logical = 0;
  unsigned physical = 0;
  if (::ioctl(fd, BLKGETSIZE64, &bytes) != 0 || ::ioctl(fd, BLKSSZGET, &logical) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: cannot read its size: {}", path, errno_text()));
  if (logical > kBlockSize)
    return Error(Errc::unsupported,
                 fmt::format("{}: has sectors of {} bytes; at most {} are supported", path, logical, kBlockSize));
  geometry.size_bytes = bytes;
  geometry.physical_block = ::ioctl(fd, BLKPBSZGET, &physical) == 0 ? physical : logical;
  geometry.supports_discard = queue_attribute(device, "discard_max_bytes").value_or(0) > 0;
  geometry.discard_unit = discard_unit_of(device);
  geometry.erase_unit = erase_unit_of(device);
  geometry.before = start_of(device);
  geometry.request_bytes = request_bytes_of(device);
  return geometry;
}

// A hole punched behind the end changes nothing and tells whether the filesystem can do it.
bool punches_holes(int fd, off_t size) {
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size, kBlockSize) == 0;
}

Geometry image_geometry(int fd, const struct stat& status, bool writable) {
  Geometry geometry;
  geometry.size_bytes = static_cast<std::uint64_t>(status.st_size);
  geometry.supports_discard = writable && punches_holes(fd, status.st_size);
  geometry.physical_block =
      static_cast<std::uint32_t>(queue_attribute(status.st_dev, "physical_block_size").value_or(kBlockSize));
  return geometry;
}

bool same_file(const std::string& path, const struct stat& status) {
  struct stat other {};
  if (path.empty() || path[0] != '/' || ::stat(path.c_str(), &other) != 0) return false;
  if (S_ISBLK(status.st_mode)) return S_ISBLK(other.st_mode) && other.st_rdev == status.st_rdev;
  return other.st_dev == status.st_dev && other.st_ino == status.st_ino;
}

std::string mount_point_of(const struct stat& status) {
  const std::string number = fmt::format("{}:{}", major(status.st_rdev), minor(status.st_rdev));
  for (const Mount& mount : mounts())
    if ((S_ISBLK(status.st_mode) && mount.device == number) || same_file(mount.source, status)) return mount.directory;
  return {};
}

bool is_swap(const struct stat& status) {
  std::ifstream swaps("/proc/swaps");
  for (std::string line; std::getline(swaps, line);)
    if (same_file(unescape_octal(line.substr(0, line.find_first_of(" \t"))), status)) return true;
  return false;
}

}  // namespace

Result<Geometry> geometry_of(int fd, const struct stat& status, const std::string& path, bool writable) {
  const bool is_block_device = S_ISBLK(status.st_mode);
  Geometry geometry =
      is_block_device ? TRY(block_device_geometry(fd, status.st_rdev, path)) : image_geometry(fd, status, writable);
  if (geometry.size_bytes < kBlockSize)
    return Error(Errc::invalid,
                 fmt::format("{}: has {} bytes, less than a block ({}): no Varve filesystem is or fits here", path,
                             geometry.size_bytes.get(), kBlockSize));
  geometry.size_bytes = geometry.size_bytes / kBlockSize * kBlockSize;
  geometry.rotational = is_rotational(block_folder(is_block_device ? status.st_rdev : status.st_dev));
  return geometry;
}

std::optional<unsigned> direct_alignment([[maybe_unused]] int fd) {
#ifndef VARVE_NO_DIOALIGN
  struct statx facts {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) == 0 && (facts.stx_mask & STATX_DIOALIGN))
    return facts.stx_dio_offset_align == 0 ? 0 : std::max(facts.stx_dio_offset_align, facts.stx_dio_mem_align);
#endif
  return std::nullopt;
}

std::string user_of(const struct stat& status) {
  const std::string mount_point = mount_point_of(status);
  if (!mount_point.empty()) return mount_point;
  return is_swap(status) ? "swap" : "";
}

}  // namespace varve::io
