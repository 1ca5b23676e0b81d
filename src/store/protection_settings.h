// How snapshots come and go by themselves (protection.h), as a mount is asked for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace varve::store {

struct ProtectionSettings {
  // `leave`: none is made, and those there are stay until their room is needed. `fade`: the same, but those go that are an hour old.
  // `off`: all go now.
  enum class Mode : std::uint8_t { leave, fade, off, on };
  Mode mode = Mode::leave;
  std::uint64_t window_s = 0;  // with `on`: how far back they reach
  std::uint64_t every_s = 30;  // as asked for

  bool is_on() const { return mode == Mode::on; }
  // One is made at most every so many seconds: not longer than they reach back, and not so short that they would be more than 10 000.
  std::uint64_t interval_s() const;
};

// "1h", or "off": protect=. "30s": protect_every=.
Result<ProtectionSettings> with_window(ProtectionSettings settings, std::string_view value);
Result<ProtectionSettings> with_interval(ProtectionSettings settings, std::string_view value);

}  // namespace varve::store
