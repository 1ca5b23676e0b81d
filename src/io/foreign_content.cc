#include "io/foreign_content.h"

#include <algorithm>
#include <string_view>

#include "base/buffer.h"
#include "io/patient_read.h"

namespace varve::io {

namespace {

using namespace std::string_view_literals;

struct Mark {
  std::uint64_t offset;  // none crosses the end of a block
  std::string_view bytes;
  const char* name;
};

// In order of trust: boot sectors of filesystems look like partition tables.
constexpr std::string_view kRaid = "\xFC\x4E\x2B\xA9"sv;
constexpr Mark kMarks[] = {
    {0, "LUKS\xBA\xBE"sv, "an encrypted LUKS volume"},
    {3, "-FVE-FS-"sv, "an encrypted BitLocker volume"},
    {4086, "SWAPSPACE2"sv, "swap space"},
    {4086, "SWAP-SPACE"sv, "swap space"},
    {65526, "SWAPSPACE2"sv, "swap space"},  // of machines with pages of 64 KiB
    {4086, "S1SUSPEND"sv, "a hibernation image in swap space"},
    {0, "LABELONE"sv, "an LVM physical volume"},
    {0x200, "LABELONE"sv, "an LVM physical volume"},
    {0x400, "LABELONE"sv, "an LVM physical volume"},
    {0x600, "LABELONE"sv, "an LVM physical volume"},
    {0, kRaid, "a member of a software RAID"},
    {0x1000, kRaid, "a member of a software RAID"},
    {0x4014, "\0\0\0\7version"sv, "a member of a ZFS pool"},
    {0x1018, "\xC6\x85\x73\xF6\x4E\x1A\x45\xCA"sv, "a bcache device or bcachefs filesystem"},
    {0, "bluestore block device"sv, "a Ceph BlueStore device"},
    {0x438, "\x53\xEF"sv, "an ext2, ext3 or ext4 filesystem"},
    {0, "XFSB"sv, "an XFS filesystem"},
    {0x10040, "_BHRfS_M"sv, "a Btrfs filesystem"},
    {0x400, "\x10\x20\xF5\xF2"sv, "an F2FS filesystem"},
    {0x406, "\x34\x34"sv, "a NILFS2 filesystem"},
    {3, "ReFS\0\0\0\0"sv, "a ReFS filesystem"},
    {3, "NTFS    "sv, "an NTFS filesystem"},
    {3, "EXFAT   "sv, "an exFAT filesystem"},
    {0x36, "FAT1"sv, "a FAT filesystem"},
    {0x52, "FAT32   "sv, "a FAT filesystem"},
    {0x20, "NXSB"sv, "an APFS container"},
    {0x400, "H+\0\4"sv, "an HFS+ filesystem"},
    {0x400, "HX\0\5"sv, "an HFSX filesystem"},
    {0x400, "BD"sv, "an HFS filesystem"},
    {0x8001, "CD001"sv, "an ISO 9660 filesystem"},
    {0x8001, "BEA01"sv, "a UDF filesystem"},
    {0x8000, "JFS1"sv, "a JFS filesystem"},
    {0x10034, "ReIsEr"sv, "a ReiserFS filesystem"},
    {0x2034, "ReIsEr"sv, "a ReiserFS filesystem"},
    {0x10000, "ReIsEr4"sv, "a Reiser4 filesystem"},
    {0x10000, "\x01\x16\x19\x70"sv, "a GFS2 filesystem"},
    {0x400, "\xE2\xE1\xF5\xE0"sv, "an EROFS filesystem"},
    {0x400, "OCFSV2"sv, "an OCFS2 filesystem"},  // of blocks of 512 bytes, and so on up to 4 KiB
    {0x800, "OCFSV2"sv, "an OCFS2 filesystem"},
    {0x1000, "OCFSV2"sv, "an OCFS2 filesystem"},
    {0x2000, "OCFSV2"sv, "an OCFS2 filesystem"},
    {0x255C, "\x54\x19\1\0"sv, "a UFS filesystem"},
    {0x255C, "\0\1\x19\x54"sv, "a UFS filesystem"},
    {0x1055C, "\x19\1\x54\x19"sv, "a UFS filesystem"},
    {0x1055C, "\x19\x54\1\x19"sv, "a UFS filesystem"},
    {0, "hsqs"sv, "a SquashFS filesystem"},
    {0x200, "EFI PART"sv, "a GPT partition table"},
    {0x1000, "EFI PART"sv, "a GPT partition table"},
    {0x1FE, "\x55\xAA"sv, "a DOS partition table or boot sector"},
};

// The blocks that marks stand in, read when they are first asked for.
class Places {
 public:
  explicit Places(BlockDevice& device) : device_(device), buffer_(kBlockSize) {}

  bool have(std::uint64_t offset, std::string_view mark) {
    const std::uint64_t block = offset >> kBlockShift;
    if (block != block_) {
      block_ = block;
      readable_ = block < device_.geometry().blocks() && read_patiently(device_, block << kBlockShift, buffer_.span()).ok();
    }
    const std::string_view bytes(reinterpret_cast<const char*>(buffer_.data()), kBlockSize);
    return readable_ && bytes.substr(offset % kBlockSize, mark.size()) == mark;
  }

 private:
  BlockDevice& device_;
  AlignedBuffer buffer_;
  std::uint64_t block_ = ~std::uint64_t{0};
  bool readable_ = false;
};

// Versions 1.0 and 0.90 have their superblock near the end.
bool has_raid_at_end(Places& places, std::uint64_t size) {
  constexpr std::uint64_t kNear = 8 << 10, kFar = 64 << 10;
  if (size < 2 * kFar) return false;
  return places.have(size - kNear, kRaid) || places.have(size - size % kFar - kFar, kRaid);
}

// The first that begins before `end`.
std::string find_mark(Places& places, std::uint64_t end) {
  for (const Mark& mark : kMarks)
    if (mark.offset < end && places.have(mark.offset, mark.bytes)) return mark.name;
  return "";
}

}  // namespace

std::string find_foreign_content(BlockDevice& device) {
  Places places(device);
  std::string name = find_mark(places, device.geometry().size_bytes);
  if (name.empty() && has_raid_at_end(places, device.geometry().size_bytes)) name = "a member of a software RAID";
  return name;
}

std::string find_any_content(BlockDevice& device) {
  std::string known = find_foreign_content(device);
  AlignedBuffer first(kBlockSize);
  if (!known.empty() || !read_patiently(device, 0, first.span()).ok()) return known;
  const bool erased = std::ranges::all_of(first.span(), [&](std::byte byte) { return byte == first.span()[0]; });
  return erased ? "" : "something unknown";
}

std::string find_newcomer(BlockDevice& device, bool has_magic) {
  if (!has_magic) return find_any_content(device);
  Places places(device);
  return find_mark(places, kBlockSize);
}

}  // namespace varve::io
