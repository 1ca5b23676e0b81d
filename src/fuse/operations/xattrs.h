// What all that answer about extended attributes share.
#pragma once

#include <linux/capability.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/item.h"
#include "fuse/operations/attributes.h"
#include "fuse/operations/request.h"
#include "fuse/protocol/privilege.h"

namespace varve::fuse {

using format::kCapability;

// A value or a list: its size if the caller gave no room, itself if it fits.
inline void reply_sized(Request& r, std::span<const std::byte> bytes, std::size_t room) {
  if (room == 0) return r.reply_struct(fuse_getxattr_out{static_cast<std::uint32_t>(bytes.size()), 0});
  if (bytes.size() > room) return r.reply_errno(ERANGE);
  r.reply_bytes(bytes);
}

// Names of "trusted." are for administrators. Which caller is one takes a look into /proc: only where there are such names.
inline void reply_names(Request& r, const std::vector<std::string>& names, std::size_t room) {
  const bool has_trusted = std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("trusted."); });
  const std::string list = to_name_list(names, has_trusted && has_capability(r.header().pid, CAP_SYS_ADMIN));
  reply_sized(r, std::as_bytes(std::span(list)), room);
}

}  // namespace varve::fuse
