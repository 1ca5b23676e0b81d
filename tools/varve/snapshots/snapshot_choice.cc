#include "varve/snapshots/snapshot_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "format/snapshot.h"

namespace varve::tool {

namespace {

std::vector<ChosenSnapshot> snapshots_in(const Json& list, bool only_automatic) {
  std::vector<ChosenSnapshot> found;
  for (const auto& one : list["snapshots"])
    if (!only_automatic || one.value("automatic", false)) found.push_back({one.value("name", ""), one.value("made", std::int64_t{0})});
  std::erase_if(found, [](const ChosenSnapshot& one) { return format::is_passing_name(one.name); });
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

// The last one made by then. Clocks can have been set back between two.
const ChosenSnapshot* last_by(const std::vector<ChosenSnapshot>& all, std::int64_t moment) {
  const ChosenSnapshot* last = nullptr;
  for (const ChosenSnapshot& one : all)
    if (one.made <= moment && (!last || one.made >= last->made)) last = &one;
  return last;
}

// `kind`: what they are called, as "automatic snapshot".
Result<ChosenSnapshot> choose(const std::vector<ChosenSnapshot>& all, const std::string& which, std::int64_t now, const char* kind) {
  for (const std::string& name : {which, std::string(format::kAutomaticPrefix) + which})
    if (const auto named = std::ranges::find(all, name, &ChosenSnapshot::name); named != all.end()) return *named;
  std::optional<std::int64_t> moment = moment_of(which, now);
  if (const auto ago = parse_duration(which); !moment && ago.ok()) moment = now - static_cast<std::int64_t>(*ago);
  const auto [oldest, newest] = std::ranges::minmax_element(all, {}, &ChosenSnapshot::made);
  const std::string range = fmt::format("there are {}, the oldest is '{}' of {}, the newest is of {}", all.size(), oldest->name,
                                        local_time(oldest->made), local_time(newest->made));
  if (!moment)
    return Error(Errc::not_found, fmt::format("there is no {} '{}', and it is no time, as 14:30 or 10m: see varve snapshot list ({})", kind,
                                              which, range));
  const ChosenSnapshot* const last = last_by(all, *moment);
  if (!last) return Error(Errc::not_found, fmt::format("no {} is as old as {}: {}", kind, local_time(*moment), range));
  return *last;
}

}  // namespace

std::vector<ChosenSnapshot> all_snapshots(const Json& list) { return snapshots_in(list, false); }

Result<ChosenSnapshot> choose_automatic(const Json& list, const std::string& which, std::int64_t now) {
  const std::vector<ChosenSnapshot> all = snapshots_in(list, true);
  if (all.empty()) return Error(Errc::not_found, "there are no automatic snapshots: `varve tune DIR protect=1h` makes them from now on");
  return choose(all, which, now, "automatic snapshot");
}

Result<ChosenSnapshot> choose_snapshot(const Json& list, const std::string& which, std::int64_t now) {
  const std::vector<ChosenSnapshot> all = all_snapshots(list);
  if (all.empty()) return Error(Errc::not_found, fmt::format("there is no snapshot '{}', and no other", which));
  return choose(all, which, now, "snapshot");
}

}  // namespace varve::tool
