// What all that answer about extended attributes share.
#pragma once

#include <cerrno>
#include <span>
#include <string_view>

#include "format/item.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

using format::kCapability;

// A value or a list: its size if the caller gave no room, itself if it fits.
inline void reply_sized(Request& r, std::span<const std::byte> bytes, std::size_t room) {
  if (room == 0) return r.reply_struct(fuse_getxattr_out{static_cast<std::uint32_t>(bytes.size()), 0});
  if (bytes.size() > room) return r.reply_errno(ERANGE);
  r.reply_bytes(bytes);
}

}  // namespace varve::fuse
