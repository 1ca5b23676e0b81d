// Replies to ioctl(2).
#pragma once

#include <cstdint>
#include <span>

#include "fuse/operations/request.h"

namespace varve::fuse {

inline void reply_ioctl(Request& r, std::span<const std::byte> data) { r.reply_struct(fuse_ioctl_out{}, data); }

template <class T>
void reply_ioctl_struct(Request& r, const T& value) {
  reply_ioctl(r, std::as_bytes(std::span(&value, 1)));
}

}  // namespace varve::fuse
