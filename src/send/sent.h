// What a stream has.
#pragma once

#include <cstdint>

namespace varve::send {

struct Sent {
  std::uint64_t inodes = 0;  // that are new, gone or changed
  std::uint64_t data_bytes = 0;
};

}  // namespace varve::send
