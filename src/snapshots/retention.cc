#include "snapshots/retention.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration.h"

namespace varve::snapshots {

namespace {

Error wrong_rule(std::string_view rule, std::string_view why) {
  return Error(Errc::invalid, fmt::format("'{}': {}, as in 1h,24h:1h,30d:1d", rule, why));
}

Result<RetentionRule> parse_rule(std::string_view text) {
  const auto colon = text.find(':');
  RetentionRule rule;
  rule.age_s = TRY(parse_duration(text.substr(0, colon)));
  if (rule.age_s == 0) return wrong_rule(text, "an age must be a second or more");
  if (colon == std::string_view::npos) return rule;
  rule.spacing_s = TRY(parse_duration(text.substr(colon + 1)));
  if (rule.spacing_s == 0) return wrong_rule(text, "a spacing must be a second or more");
  if (rule.spacing_s > rule.age_s) return wrong_rule(text, "a spacing must be no longer than its age");
  return rule;
}

std::uint64_t most_of(std::uint64_t span_s, std::uint64_t spacing_s) { return span_s / spacing_s + (span_s % spacing_s ? 1 : 0); }

// Clocks of former mounts may say otherwise, but nothing is younger than what was made after it.
std::vector<std::int64_t> ages_in_order(std::span<const AgedSnapshot> oldest_first) {
  std::vector<std::int64_t> ages(oldest_first.size());
  std::int64_t least = 0;
  for (std::size_t i = ages.size(); i-- > 0;) ages[i] = least = std::max(least, oldest_first[i].age_s);
  return ages;
}

}  // namespace

Result<std::vector<RetentionRule>> parse_retention(std::string_view text) {
  std::vector<RetentionRule> rules;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (rules.size() == kMostRetentionRules) return wrong_rule(word, fmt::format("there may be {} rules", kMostRetentionRules));
    const RetentionRule rule = TRY(parse_rule(word));
    if (!rules.empty() && rule.spacing_s == 0) return wrong_rule(word, "only the first rule goes without a spacing");
    if (!rules.empty() && rule.age_s <= rules.back().age_s) return wrong_rule(word, "each age must be longer than the one before");
    if (!rules.empty() && rule.spacing_s <= rules.back().spacing_s)
      return wrong_rule(word, "each spacing must be longer than the one before");
    rules.push_back(rule);
    if (spaced_snapshots(rules) > kMostSpacedSnapshots)
      return wrong_rule(word, fmt::format("that makes more than {} snapshots: take a longer spacing", kMostSpacedSnapshots));
    at = end + 1;
  }
  return rules;
}

std::string retention_text(std::span<const RetentionRule> rules) {
  std::vector<std::string> words;
  for (const RetentionRule& rule : rules)
    words.push_back(duration_text(rule.age_s) + (rule.spacing_s ? ":" + duration_text(rule.spacing_s) : ""));
  return fmt::format("{}", fmt::join(words, ","));
}

std::uint64_t spaced_snapshots(std::span<const RetentionRule> rules) {
  std::uint64_t count = 0, from_s = 0;
  for (const RetentionRule& rule : rules) {
    if (rule.spacing_s) count += most_of(rule.age_s - from_s, rule.spacing_s);
    from_s = rule.age_s;
  }
  return count;
}

std::size_t rule_for(std::int64_t age_s, std::span<const RetentionRule> rules) {
  const auto covers = [age_s](const RetentionRule& rule) { return age_s <= static_cast<std::int64_t>(rule.age_s); };
  const auto found = std::ranges::find_if(rules, covers);
  return found == rules.end() ? rules.size() - 1 : static_cast<std::size_t>(found - rules.begin());
}

std::vector<bool> superfluous(std::span<const AgedSnapshot> oldest_first, std::span<const RetentionRule> rules) {
  std::vector<bool> goes(oldest_first.size());
  if (rules.empty() || oldest_first.size() < 3) return goes;
  const std::vector<std::int64_t> ages = ages_in_order(oldest_first);
  std::int64_t before = ages.front();  // of the newest one that stays and is older
  for (std::size_t i = 1; i + 1 < ages.size(); ++i) {
    const auto spacing = static_cast<std::int64_t>(rules[rule_for(ages[i], rules)].spacing_s);
    const bool is_known = ages[i - 1] != ages[i] || ages[i] != ages[i + 1];
    goes[i] = !oldest_first[i].stays && is_known && spacing > 0 && before - ages[i + 1] <= spacing;
    if (!goes[i]) before = ages[i];
  }
  return goes;
}

}  // namespace varve::snapshots
