// How snapshots come and go by themselves (protection.h), as a mount is asked for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace varve::snapshots {

// Snapshots up to this age may be as far apart as this.
struct RetentionRule {
  std::uint64_t age_s = 0;
  std::uint64_t spacing_s = 0;  // 0: all are kept
  bool operator==(const RetentionRule&) const = default;
};

struct ProtectionSettings {
  // `leave`: none is made, and those there are stay until their room is needed. `fade`: the same, but those go that are older than
  // `window_s`, or than an hour where that is longer. `off`: all go now.
  enum class Mode : std::uint8_t { leave, fade, off, on };
  Mode mode = Mode::leave;
  std::uint64_t window_s = 0;  // with `on` and `fade`: how far back they reach
  std::uint64_t every_s = 30;  // as asked for
  std::vector<RetentionRule> rules = {};  // which are kept up to there; empty: all

  bool is_on() const { return mode == Mode::on; }
  // One is made at most every so many seconds: not longer than all are kept, and not so short that they would be more than 10 000. Where
  // the first rule has a spacing it is that.
  std::uint64_t interval_s() const;
  std::string window_text() const;  // as protect= has it
};

// "1h", "1h,24h:1h,30d:1d" (retention.h), or "off": protect=. "30s": protect_every=.
Result<ProtectionSettings> with_window(ProtectionSettings settings, std::string_view value);
Result<ProtectionSettings> with_interval(ProtectionSettings settings, std::string_view value);

}  // namespace varve::snapshots
