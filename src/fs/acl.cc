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

// change(permissions, shift of its class in the mode) -> permissions, for each entry that the mode mirrors.
template <class Change>
format::Bytes with_mirrored_entries(std::span<const std::byte> value, Change change) {
  format::Bytes changed(value.begin(), value.end());
  const std::uint16_t group = has_mask(value) ? kMask : kOwningGroup;
  for (std::size_t at = kHeaderBytes; at + kEntryBytes <= value.size(); at += kEntryBytes) {
    const std::uint16_t tag = format::Reader(value.subspan(at)).u16();
    if (tag != kOwner && tag != group && tag != kOther) continue;
    const unsigned shift = tag == kOwner ? 6 : tag == group ? 3 : 0;
    std::byte& bits = changed[at + kPermissionsAt];
    bits = static_cast<std::byte>(change(static_cast<std::uint32_t>(bits), shift) & 7U);
  }
  return changed;
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

Result<InheritedAcl> inherit_acl(std::span<const std::byte> default_acl, std::uint32_t mode) {
  InheritedAcl inherited;
  inherited.access = with_mirrored_entries(
      default_acl, [mode](std::uint32_t bits, unsigned shift) { return bits & (mode >> shift); });
  const AccessAcl acl = TRY(read_access_acl(inherited.access));
  inherited.permissions = acl.permissions;
  if (acl.minimal) inherited.access.clear();
  return inherited;
}

format::Bytes acl_after_chmod(std::span<const std::byte> value, std::uint32_t mode) {
  return with_mirrored_entries(value, [mode](std::uint32_t, unsigned shift) { return mode >> shift; });
}

}  // namespace varve::fs
