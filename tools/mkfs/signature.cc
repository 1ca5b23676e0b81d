#include "mkfs/signature.h"

#include <algorithm>
#include <string_view>

#include "base/buffer.h"
#include "format/superblock.h"
#include "mkfs/probe.h"
#include "mkfs/report.h"

namespace varve::mkfs {

namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  const char* name;
};

// By their magic numbers alone, so that damaged ones count; what else there is, libblkid knows. In order of trust: partition
// tables last, because boot sectors of filesystems look like them.
constexpr Signature kSignatures[] = {
    {0x438, "\x53\xEF"sv, "an ext2, ext3 or ext4 filesystem"},
    {0, "XFSB"sv, "an XFS filesystem"},
    {0x10040, "_BHRfS_M"sv, "a Btrfs filesystem"},
    {0x400, "\x10\x20\xF5\xF2"sv, "an F2FS filesystem"},
    {0x406, "\x34\x34"sv, "a NILFS2 filesystem"},
    {0x1018, "\xC6\x85\x73\xF6\x4E\x1A\x45\xCA"sv, "a bcachefs filesystem"},
    {3, "NTFS    "sv, "an NTFS filesystem"},
    {3, "EXFAT   "sv, "an exFAT filesystem"},
    {0x36, "FAT1"sv, "a FAT filesystem"},
    {0x52, "FAT32   "sv, "a FAT filesystem"},
    {0x8001, "CD001"sv, "an ISO 9660 filesystem"},
    {0x8000, "JFS1"sv, "a JFS filesystem"},
    {0x10034, "ReIsEr"sv, "a ReiserFS filesystem"},
    {0x400, "\xE2\xE1\xF5\xE0"sv, "an EROFS filesystem"},
    {0, "hsqs"sv, "a SquashFS filesystem"},
    {4086, "SWAPSPACE2"sv, "swap space"},
    {0, "LUKS\xBA\xBE"sv, "an encrypted LUKS volume"},
    {0x218, "LVM2 001"sv, "an LVM physical volume"},
    {0x1000, "\xFC\x4E\x2B\xA9"sv, "a member of a software RAID"},
    {0x200, "EFI PART"sv, "a GPT partition table"},
    {0x1FE, "\x55\xAA"sv, "a DOS partition table or boot sector"},
};

constexpr std::size_t kProbeBytes = 128 * 1024;

// The superblock in `block`, if it is one; a damaged or newer one counts too.
std::optional<std::string> varve_in(std::span<const std::byte> block) {
  const auto super = format::decode_superblock(block);
  if (!super.ok()) return super.fails_with(Errc::not_varve) ? std::nullopt : std::optional(std::string("a damaged Varve filesystem"));
  const std::string label = super->label.empty() ? "" : fmt::format(" \"{}\"", super->label);
  return fmt::format("the Varve filesystem{} with UUID {}", label, uuid_text(super->uuid));
}

}  // namespace

Result<std::optional<std::string>> find_content(io::BlockDevice& device) {
  const std::uint64_t size = device.geometry().size_bytes;
  AlignedBuffer start(std::min<std::uint64_t>(size, kProbeBytes));
  if (start.size() < kBlockSize) return std::optional<std::string>();
  TRY(device.read(0, start.span()));
  if (auto varve = varve_in(start.span().first(kBlockSize))) return varve;
  AlignedBuffer end(kBlockSize);
  TRY(device.read(size - kBlockSize, end.span()));
  if (auto varve = varve_in(end.span())) return varve;
  const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
  for (const Signature& s : kSignatures)
    if (bytes.size() >= s.offset + s.bytes.size() && bytes.substr(s.offset, s.bytes.size()) == s.bytes)
      return std::optional<std::string>(s.name);
  return probe_content(device);
}

Status refuse_known_content(io::BlockDevice& device) {
  const auto content = TRY(find_content(device));
  if (!content) return {};
  return Error(Errc::exists, fmt::format("{} holds {}: use -f to overwrite it", device.name(), *content));
}

}  // namespace varve::mkfs
