// How tools ask a running daemon, by ioctl(2) on any directory or file of the mount. What they ask stands in control/requests.h.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace varve::control {

// A request, and its answer in the same place. One that does not fit is answered with its first piece and a name: further calls, with that
// name, an offset and no request, get the other pieces. ENODATA: forgotten, begin again.
struct Message {
  std::uint64_t document = 0;  // 0: a request
  std::uint32_t offset = 0;    // of this piece
  std::uint32_t total = 0;     // bytes of the request, or of the whole answer
  std::uint32_t json = 0;      // so many bytes of the answer are its JSON: the first ones
  std::uint32_t reserved = 0;
  char room[16352] = {};
};
static_assert(sizeof(Message) == 16376, "part of the ioctl's number, which has 14 bits for it");

inline constexpr unsigned long kControlIoctl = _IOWR('V', 0x77, Message);

}  // namespace varve::control
