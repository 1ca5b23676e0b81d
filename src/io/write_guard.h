// What decides whether this program may still write, asked by devices in which a write can wait: on the way to another machine.
#pragma once

#include <cstdint>

namespace varve::io {

// Thread-safe; waits for nothing. Asked immediately before a write or discard is sent, whenever it was submitted.
class WriteGuard {
 public:
  enum class Verdict : std::uint8_t {
    yes,
    not_now,  // ask again in a moment
    never,    // it ends with EBUSY
  };

  virtual ~WriteGuard() = default;
  // `looked_after_ns` (CLOCK_BOOTTIME): what was found out before does not count; the device was out of reach until then.
  virtual Verdict may_send(std::uint64_t looked_after_ns) = 0;
  // Somebody waits for a yes.
  virtual void look_soon() = 0;
};

}  // namespace varve::io
