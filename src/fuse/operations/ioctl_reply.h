// Replies to ioctl(2).
#pragma once

#include <cstdint>
#include <span>

#include "control/control.h"
#include "fuse/operations/request.h"
#include "fuse/operations/session.h"

namespace varve::fuse {

inline void reply_ioctl(Request& r, std::span<const std::byte> data) { r.reply_struct(fuse_ioctl_out{}, data); }

template <class T>
void reply_ioctl_struct(Request& r, const T& value) {
  reply_ioctl(r, std::as_bytes(std::span(&value, 1)));
}

// A piece of a document that make() gives as a whole.
template <class Make>
Status document(Request& r, Make&& make) {
  struct Ask {
    std::uint64_t snapshot;
    std::uint32_t offset;
  };
  const auto ask = TRY(r.body().take<Ask>());
  auto& snapshots = r.session().status_pages();
  const control::StatusPage page = ask.snapshot ? TRY(snapshots.page(ask.snapshot, ask.offset)) : snapshots.add(make());
  reply_ioctl_struct(r, page);
  return {};
}

}  // namespace varve::fuse
