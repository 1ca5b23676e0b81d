// POSIX access ACLs and the mode bits that mirror them. The kernel checks permissions (it knows the ACL); whoever stores
// one keeps mode and ACL in step.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "format/item.h"

namespace varve::fs {

inline constexpr std::string_view kAccessAcl = "system.posix_acl_access";

struct AccessAcl {
  std::uint32_t permissions = 0;  // what the mode's nine bits become
  bool minimal = false;           // says no more than they do: need not be stored
};

// The value as in the xattr: version 2, entries of tag, permissions and id. Errc::invalid if it is none.
Result<AccessAcl> read_access_acl(std::span<const std::byte> value);

// The same ACL after chmod to `mode`.
format::Bytes acl_after_chmod(std::span<const std::byte> value, std::uint32_t mode);

}  // namespace varve::fs
