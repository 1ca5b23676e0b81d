#include "varve/snapshot_choice.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "format/snapshot.h"

namespace varve::tool {

namespace {

std::vector<AutomaticSnapshot> automatic_in(const Json& list) {
  std::vector<AutomaticSnapshot> found;
  for (const auto& one : list["snapshots"])
    if (one.value("automatic", false)) found.push_back({one.value("name", ""), one.value("made", std::int64_t{0})});
  return found;
}

// The last moment that a time of day, or a day with one, may mean.
std::optional<std::int64_t> moment_of(const std::string& text, std::int64_t now) {
  const auto today = static_cast<std::time_t>(now);
  constexpr std::array kForms = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d_%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
                                 "%H:%M:%S", "%H:%M"};
  for (const std::string_view form : kForms) {
    std::tm parts{};
    if (!::localtime_r(&today, &parts)) return std::nullopt;
    parts.tm_sec = 0;
    const char* const end = ::strptime(text.c_str(), form.data(), &parts);
    if (!end || *end) continue;
    parts.tm_isdst = -1;
    std::time_t moment = ::mktime(&parts);
    if (!form.starts_with("%Y") && moment > now) {  // of yesterday
      --parts.tm_mday;
      parts.tm_isdst = -1;
      moment = ::mktime(&parts);
    }
    return moment;
  }
  return std::nullopt;
}

}  // namespace

std::string local_time(std::int64_t seconds, const char* form) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[64] = "?";
  if (::localtime_r(&time, &parts)) std::strftime(text, sizeof text, form, &parts);
  return text;
}

Result<AutomaticSnapshot> choose_automatic(const Json& list, const std::string& which, std::int64_t now) {
  const std::vector<AutomaticSnapshot> all = automatic_in(list);
  if (all.empty()) return Error(Errc::not_found, "there are no automatic snapshots: `varve tune DIR protect=1h` makes them from now on");
  for (const AutomaticSnapshot& one : all)
    if (one.name == which || one.name == std::string(format::kAutomaticPrefix) + which) return one;
  std::optional<std::int64_t> moment = moment_of(which, now);
  if (const auto ago = parse_duration(which); !moment && ago.ok()) moment = now - static_cast<std::int64_t>(*ago);
  const std::string range = fmt::format("there are {} automatic ones, from {} to {}", all.size(), local_time(all.front().made),
                                        local_time(all.back().made));
  if (!moment)
    return Error(Errc::not_found,
                 fmt::format("'{}' is neither the name of an automatic snapshot nor a time, as 14:30 or 10m: {}", which, range));
  const AutomaticSnapshot* last = nullptr;
  for (const AutomaticSnapshot& one : all)
    if (one.made <= *moment) last = &one;
  if (!last) return Error(Errc::not_found, fmt::format("no automatic snapshot is as old as {}: {}", local_time(*moment), range));
  return *last;
}

}  // namespace varve::tool
