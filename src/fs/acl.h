// POSIX ACLs and the mode bits that mirror them. The kernel checks permissions (it knows the ACL); the one that stores one
// keeps mode and ACL in step, and hands default ACLs of directories down.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "format/item.h"

namespace varve::fs {

inline constexpr std::string_view kAccessAcl = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAcl = "system.posix_acl_default";

struct AccessAcl {
  std::uint32_t permissions = 0;  // what the mode's nine bits become
  bool minimal = false;           // says no more than they do: need not be stored
};

// The value as in the xattr: version 2, entries of tag, permissions and id. Errc::invalid if it is none.
Result<AccessAcl> read_access_acl(std::span<const std::byte> value);

struct InheritedAcl {
  std::uint32_t permissions = 0;  // nine bits of the new inode
  format::Bytes access;           // its access ACL; empty: the bits say it all
};

// What an inode made with `mode` gets from the default ACL of its directory. There the umask does not count.
Result<InheritedAcl> inherit_acl(std::span<const std::byte> default_acl, std::uint32_t mode);

// The same ACL after chmod to `mode`.
format::Bytes acl_after_chmod(std::span<const std::byte> value, std::uint32_t mode);

}  // namespace varve::fs
