#include "fs/acl.h"

#include "format/codec.h"

namespace varve::fs {

namespace {

constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kEntryBytes = 8;
constexpr std::size_t kPermissionsAt = 2;  // in an entry

enum Tag : std::uint16_t { kOwner = 1, kUser = 2, kOwningGroup = 4, kGroup = 8, kMask = 16, kOther = 32 };

bool has_mask(std::span<const std::byte> value) {
  for (std::size_t at = kHeaderBytes; at + kEntryBytes <= value.size(); at += kEntryBytes)
    if (format::Reader(value.subspan(at)).u16() == kMask) return true;
  return false;
}

}  // namespace

Result<AccessAcl> read_access_acl(std::span<const std::byte> value) {
  if (value.size() < kHeaderBytes || (value.size() - kHeaderBytes) % kEntryBytes != 0) return Errc::invalid;
  format::Reader in(value);
  if (in.u32() != kVersion) return Errc::invalid;
  AccessAcl acl{.minimal = true};
  std::uint32_t owning_group = 0, mask = 0;
  bool masked = false;
  for (std::size_t at = kHeaderBytes; at < value.size(); at += kEntryBytes) {
    const std::uint16_t tag = in.u16();
    const std::uint32_t bits = in.u16() & 7U;
    in.u32();  // whose
    switch (tag) {
      case kOwner: acl.permissions |= bits << 6; break;
      case kOwningGroup: owning_group = bits; break;
      case kOther: acl.permissions |= bits; break;
      case kMask:
        masked = true;
        mask = bits;
        [[fallthrough]];
      case kUser:
      case kGroup: acl.minimal = false; break;
      default: return Errc::invalid;
    }
  }
  acl.permissions |= (masked ? mask : owning_group) << 3;
  return acl;
}

format::Bytes acl_after_chmod(std::span<const std::byte> value, std::uint32_t mode) {
  format::Bytes changed(value.begin(), value.end());
  const bool masked = has_mask(value);
  for (std::size_t at = kHeaderBytes; at + kEntryBytes <= value.size(); at += kEntryBytes) {
    const std::uint16_t tag = format::Reader(value.subspan(at)).u16();
    const auto set = [&](std::uint32_t bits) { changed[at + kPermissionsAt] = static_cast<std::byte>(bits & 7); };
    if (tag == kOwner) set(mode >> 6);
    if (tag == (masked ? kMask : kOwningGroup)) set(mode >> 3);
    if (tag == kOther) set(mode);
  }
  return changed;
}

}  // namespace varve::fs
