#include "snapshots/protection_settings.h"

#include <algorithm>

#include "base/duration.h"
#include "snapshots/retention.h"

namespace varve::snapshots {

namespace {
constexpr std::uint64_t kMostAutomatic = 10'000;
static_assert(kMostAutomatic >= 4 * kMostSpacedSnapshots);  // half of them, with those that grow from one rule into the next
}  // namespace

std::uint64_t ProtectionSettings::interval_s() const {
  if (!is_on()) return every_s;
  if (!rules.empty() && rules.front().spacing_s) return rules.front().spacing_s;
  const std::uint64_t all_s = rules.empty() ? window_s : rules.front().age_s, most = kMostAutomatic - 2 * spaced_snapshots(rules);
  return std::max(std::min(every_s, all_s), all_s / most + (all_s % most ? 1 : 0));
}

std::string ProtectionSettings::window_text() const {
  if (!is_on()) return "off";
  return rules.empty() ? duration_text(window_s) : retention_text(rules);
}

Result<ProtectionSettings> with_window(ProtectionSettings settings, std::string_view value) {
  using Mode = ProtectionSettings::Mode;
  const bool has_rules = value.find_first_of(",:") != std::string_view::npos;
  settings.rules = has_rules ? TRY(parse_retention(value)) : std::vector<RetentionRule>();
  settings.window_s = has_rules ? settings.rules.back().age_s : value == "off" ? 0 : TRY(parse_duration(value));
  settings.mode = settings.window_s ? Mode::on : Mode::off;
  return settings;
}

Result<ProtectionSettings> with_interval(ProtectionSettings settings, std::string_view value) {
  settings.every_s = TRY(parse_duration(value));
  if (settings.every_s == 0) return Error(Errc::invalid, "protect_every must be a second or more; protect=off ends it");
  return settings;
}

}  // namespace varve::snapshots
