// What tools ask a running daemon, by ioctl(2) on any directory or file of the mount. Shared with tools/varve.
#pragma once

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace varve::fuse {

// A piece of a document. The first call has snapshot 0 and offset 0: the daemon makes the document, names it and gives
// its first piece; further calls ask for the rest by name and offset. ENODATA: forgotten, begin again.
struct StatusPage {
  std::uint64_t snapshot = 0;
  std::uint32_t offset = 0;  // bytes
  std::uint32_t total = 0;   // bytes of the document
  char text[8176] = {};      // total - offset bytes of it are valid, if it holds so many
};
static_assert(sizeof(StatusPage) == 8192, "part of the ioctl's number");

inline constexpr unsigned long kStatusIoctl = _IOWR('V', 0x60, StatusPage);  // JSON: state of the mount
inline constexpr unsigned long kCheckpointIoctl = _IO('V', 0x61);            // returns when it is settled

}  // namespace varve::fuse
