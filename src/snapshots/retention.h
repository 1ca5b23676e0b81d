// Which automatic snapshots are kept for how long, as the option protect= says it. "1h,24h:1h,30d:1d" keeps all of the last hour, one for
// each hour of a day, and one for each day of 30. Pure functions: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshots/protection_settings.h"

namespace varve::snapshots {

constexpr std::size_t kMostRetentionRules = 8;
// How many snapshots the rules with a spacing may ask for. Twice as many may be there while they grow from one rule into the next.
constexpr std::uint64_t kMostSpacedSnapshots = 2500;

// AGE[:SPACING],...: ages and spacings grow, and only the first rule goes without a spacing. Errc::invalid names the rule that is wrong.
Result<std::vector<RetentionRule>> parse_retention(std::string_view text);
// As it is parsed.
std::string retention_text(std::span<const RetentionRule> rules);
// How many snapshots the rules with a spacing ask for.
std::uint64_t spaced_snapshots(std::span<const RetentionRule> rules);
// The rule for a snapshot of this age: the last one for whatever is older. `rules` has one at least.
std::size_t rule_for(std::int64_t age_s, std::span<const RetentionRule> rules);

struct AgedSnapshot {
  std::int64_t age_s = 0;
  bool stays = false;  // somebody uses it
};
// Says of each snapshot, in the order in which they were made, whether it may go: without it those around it are no farther apart than its
// rule allows. The first and the last one stay. So do those in the middle of several with one age: when they were made is not known.
std::vector<bool> superfluous(std::span<const AgedSnapshot> oldest_first, std::span<const RetentionRule> rules);

}  // namespace varve::snapshots
