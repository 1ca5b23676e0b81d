#include "varve/observe/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/duration.h"
#include "base/json_text.h"
#include "base/types.h"
#include "base/utf8.h"
#include "control/status_fields.h"
#include "varve/observe/past_errors.h"

namespace varve::tool {

namespace {

using control::Field;
using control::FieldPath;
using control::Unit;

const Json& part(const Json& status, const char* key) { return control::section_of(status, key); }

std::uint64_t number_in(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

std::string line(const char* label, const std::string& value) { return value.empty() ? "" : fmt::format("  {:<26}{}\n", label, value); }

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} days {} h", seconds / 86400, seconds / 3600 % 24);
}

std::string wait_text(const Json& wait) {
  const std::uint64_t times = number_in(wait, "times");
  if (times == 0) return "";
  const double mean = wait.value("total_us", 0.0) / static_cast<double>(times);
  return fmt::format("{}, {:.2f} ms each, {:.2f} at most", counted(times, "time"), mean / 1000, wait.value("longest_us", 0.0) / 1000);
}

std::string names_text(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : " ") + name.get<std::string>();
  return text;
}

// Empty: there is nothing to show.
std::string value_text(const Json& status, const Field& field) {
  const Json& value = control::value_of(status, field);
  if (value.is_null()) return "";
  const auto number = [&value] { return value.get<std::uint64_t>(); };
  switch (field.unit) {
    case Unit::words: return value.is_string() ? printable(value.get<std::string>()) : "";
    case Unit::flag: return value == true ? "yes" : "no";
    case Unit::count: return fmt::format("{}", number());
    case Unit::bytes: return size_text(number());
    case Unit::blocks: return size_text(number() << kBlockShift);
    case Unit::seconds: return duration_text(number());
    case Unit::time: return number() ? local_time_text(value.get<std::int64_t>()) : "";
    case Unit::factor: return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "";
    case Unit::wait: return wait_text(value);
    case Unit::list: return names_text(value);
    case Unit::event: return "";
    case Unit::share: break;
  }
  const std::string size = size_text(number() << kBlockShift);
  const std::uint64_t whole = control::number_of(status, "space.device_blocks");
  return whole ? fmt::format("{} ({:.1f} %)", size, 100.0 * static_cast<double>(number()) / static_cast<double>(whole)) : size;
}

// As text some stand before another field, further up than in JSON.
struct Moved {
  FieldPath moved, next;
};
constexpr Moved kMoved[] = {{"backend", "read_only"},
                            {"space.reclaimable_blocks", "space.reserve_blocks"},
                            {"memory.memory_limit_bytes", "memory.node_cache_bytes"}};

std::string lines_of(const Json& status, std::string_view section) {
  std::string text;
  const auto add = [&](const Field& field) { text += *field.label ? line(field.label, value_text(status, field)) : ""; };
  for (const Field& field : control::kFields) {
    if (field.section != section) continue;
    bool is_moved = false;
    for (const auto& [moved, next] : kMoved) {
      if (&*next == &field) add(*moved);
      is_moved |= &*moved == &field;
    }
    if (!is_moved) add(field);
  }
  return text;
}

// Empty: the status has nothing of it.
std::string section_text(const Json& status, std::string_view section, const char* title) {
  const std::string lines = lines_of(status, section);
  return lines.empty() ? "" : fmt::format("\n{}\n{}", title, lines);
}

// The state in words: what is wrong first.
std::string state_of(const Json& status) {
  const PastErrors errors = past_errors(status);
  if (status.contains("state")) return status.value("state", "") + (errors.count ? "; " + text_of(errors) : "");
  const bool asked = part(status, "mount").value("read_only", false);
  if (const std::string shown = status.value("snapshot", ""); !shown.empty())
    return fmt::format("shows the snapshot '{}', read-only", shown);
  if (status.value("read_only", false))
    return asked ? "mounted read-only" : "READ-ONLY after an error: " + status.value("read_only_reason", std::string("see its log"));
  const Json& last = part(status, "last_error");
  const bool names_it = errors.count > 0 && !errors.are_over() && last.is_object();
  return fmt::format("mounted for {}{}{}{}", duration_text(number_in(status, "uptime_seconds")), errors.count ? "; " : ", ",
                     text_of(errors), names_it ? ": " + last.value("error", std::string()) : "");
}

// What users can still write is what df says.
std::string room_of(const Json& space) {
  const std::uint64_t device = number_in(space, "device_blocks") << kBlockShift;
  if (!space.contains("charged_blocks"))
    return fmt::format("{}, {} of it live", size_text(device), size_text(number_in(space, "live_blocks") << kBlockShift));
  const std::uint64_t used = number_in(space, "charged_blocks") << kBlockShift, reserve = number_in(space, "reserve_blocks") << kBlockShift;
  const bool is_told = space.contains("available_blocks");  // not by a daemon of before
  const std::string free = is_told ? fmt::format(", {} free", size_text(number_in(space, "available_blocks") << kBlockShift)) : "";
  return fmt::format("{}: {} used{}, {} reserved for cleaning", size_text(device), size_text(used), free, size_text(reserve));
}

// Empty: the image is as long as it was.
std::string cut_text(const Json& status) {
  const std::uint64_t missing = number_in(part(status, "space"), "missing_device_bytes");
  if (missing == 0) return "";
  return fmt::format("CUT OFF: the image is {} shorter than the filesystem; what lay there is lost: copy what can be read",
                     size_text(missing));
}

// Empty: the device is no longer than the filesystem.
std::string growth_text(const Json& status) {
  const std::uint64_t unused = number_in(part(status, "space"), "unused_device_bytes");
  if (unused == 0) return "";
  return fmt::format("varve resize {} would give {} more: the device or image is so much longer than the filesystem",
                     part(status, "mount").value("mount_point", status.value("device", "")), size_text(unused));
}

// Of what tells of snapshots. Empty: none, or it is said to be the reason for more.
std::string damage_text(const Json& status) {
  const std::string damage = part(status, "snapshots").value("damage", "");
  return damage == status.value("read_only_reason", "") ? "" : damage;
}

// Those that stay. Empty: nothing to tell.
std::string kept_text(const Json& snapshots, const Json& protection) {
  const std::uint64_t automatic = std::min(number_in(snapshots, "count"), number_in(protection, "snapshots"));
  const std::uint64_t count = number_in(snapshots, "count") - automatic;
  const std::uint64_t all = number_in(snapshots, "held_bytes"), held = all - std::min(all, number_in(protection, "held_bytes"));
  const bool is_told_with_automatic = automatic > 0 && !snapshots.value("giving_back", false);
  if (count == 0 && (held == 0 || is_told_with_automatic)) return "";
  std::string text = fmt::format("{}, with {} that nothing else needs", counted(count, "snapshot"), size_text(held));
  return snapshots.value("giving_back", false) ? text + "; what deleted ones held is being given back" : text;
}

// Which are kept: "all of the last 1h, made every 30s; one for each 1h up to 24h".
std::string rules_text(const Json& protection) {
  const std::string every = varve::duration_text(number_in(protection, "every_seconds"));
  const Json rules = protection.value("rules", Json::array());  // a daemon of before has none
  if (rules.empty()) return fmt::format("the last {}, every {}", varve::duration_text(number_in(protection, "seconds")), every);
  std::string text;
  for (const Json& rule : rules) {
    const std::string age = varve::duration_text(number_in(rule, "age_seconds"));
    const std::uint64_t spacing = number_in(rule, "spacing_seconds");
    text += text.empty() ? "" : "; ";
    text += spacing ? fmt::format("one for each {} up to {}", varve::duration_text(spacing), age)
                    : fmt::format("all of the last {}, every {}", age, every);
  }
  return text;
}

// " (120, 23 and 6), the oldest 6d old". Empty: there was no checkpoint yet, or without rules there is nothing to tell.
std::string kept_by_rule_text(const Json& protection) {
  const Json counts = protection.value("kept_by_rule", Json::array());
  if (counts.size() < 2) return "";
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ", counts[i].get<std::uint64_t>());
  return fmt::format(" ({}), the oldest {} old", text, varve::rough_duration_text(number_in(protection, "oldest_seconds")));
}

// Empty: none are made by themselves, and none are left.
std::string protection_text(const Json& protection) {
  const std::uint64_t count = number_in(protection, "snapshots");
  const bool is_on = protection.value("on", false);
  if (!is_on && count == 0) return "";
  return fmt::format("{}: {}{}, with {} that counts as free", is_on ? rules_text(protection) : "off", counted(count, "automatic snapshot"),
                     is_on ? kept_by_rule_text(protection) : "", size_text(number_in(protection, "held_bytes")));
}

std::string head_text(const Json& status) {
  return "Varve filesystem\n" + lines_of(status, "") + line("Damage", damage_text(status)) +
         line("Mounted for", value_text(status, *control::FieldPath("uptime_seconds")));
}

// Used segments by how full they are: a bar for each 5 %.
std::string utilisation_text(const Json& space) {
  if (!space.contains("utilisation")) return "";
  const auto counts = space["utilisation"].get<std::vector<std::uint64_t>>();
  const std::uint64_t most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  if (most == 0) return "";
  std::string text = "\nSegments by share of live blocks\n";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t width = (counts[i] * 40 + most - 1) / most;
    text += fmt::format("  {:>3}-{:<3}% {:>8}{}{}\n", i * 100 / counts.size(), (i + 1) * 100 / counts.size(), counts[i],
                        width ? "  " : "", std::string(width, '#'));
  }
  return text;
}

// What each head has filled, and how much of that lives.
std::string groups_text(const Json& space) {
  if (!space.contains("groups") || space["groups"].empty()) return "";
  const std::uint64_t blocks = space.value("segment_blocks", std::uint64_t{1});
  std::string text = "\nSegments by group\n";
  for (const Json& group : space["groups"]) {
    const std::uint64_t segments = group.value("segments", std::uint64_t{0});
    const std::uint64_t live = group.value("live_blocks", std::uint64_t{0});
    const std::string name = group["group"].is_string() ? group["group"].get<std::string>() : json_text(group["group"]);
    text += fmt::format("  {:<8} {:>8}  {:5.1f} % live{}\n", name, segments,
                        100.0 * static_cast<double>(live) / static_cast<double>(std::max<std::uint64_t>(1, segments * blocks)),
                        group.value("open", false) ? ", one open" : "");
  }
  return text;
}

std::string profile_text(const Json& device) {
  const auto value = [&](const char* key, const char* how, bool bytes) {
    const std::uint64_t number = device.value(key, std::uint64_t{0});
    if (!number) return std::string("not known");
    return fmt::format("{} ({})", bytes ? size_text(number) : fmt::format("{}", number), device.value(how, "?"));
  };
  return fmt::format("\nWhat the device writes cheaply\n  {:<26}{}\n  {:<26}{}\n", "Erase unit",
                     value("erase_unit", "erase_unit_is", true), "Places written in turn", value("streams", "streams_are", false));
}

std::string error_text(const Json& status, FieldPath path) {
  const Json& event = control::value_of(status, *path);
  if (!event.is_object()) return "";
  std::string text = fmt::format("\n{}\n", path->label) + line("Error", printable(event.value("error", "")));
  for (const auto& [label, key] : {std::pair{"Block", "block"}, {"Inode", "inode"}})
    if (const std::uint64_t number = number_in(event, key)) text += line(label, fmt::format("{}", number));
  return event.contains("seconds") ? text + line("When", local_time_text(event.value("seconds", std::int64_t{0}))) : text;
}

std::string scrub_section(const Json& status) {
  return part(status, "scrub").value("state", "never") == "never" ? "" : section_text(status, "scrub", "Scrub");
}

std::string faults_text(const Json& status) {
  const Json& faults = part(status, "faults");
  const bool has_any = number_in(faults, "unreadable") + number_in(faults, "damaged") + number_in(faults, "other") > 0;
  return has_any ? section_text(status, "faults", "Errors since the mount") : "";
}

}  // namespace

std::string local_time_text(std::int64_t seconds, const char* form) {
  const std::time_t when = seconds;
  std::tm parts{};
  char text[64] = "?";
  if (::localtime_r(&when, &parts)) std::strftime(text, sizeof text, form, &parts);
  return text;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 1024; value /= 1024) ++unit;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string outage_text(const Json& status) {
  const Json& connection = part(status, "connection");
  if (connection.value("connected", true)) return "";
  const std::uint64_t away = number_in(connection, "away_ms"), patience = number_in(connection, "patience_ms");
  return fmt::format("{}: not connected for {} s{}", printable(status.value("device", "")), away / 1000,
                     status.value("read_only", false) ? "" : fmt::format("; waits up to {} s, then read-only", patience / 1000));
}

std::string host_text(const Json& status) {
  const Json& host = part(status, "host");
  if (!host.value("full", false)) return "";
  return fmt::format("no room for {} s; {} held, changes are refused; goes on by itself when there is room",
                     number_in(host, "since_ms") / 1000, size_text(number_in(host, "held_bytes")));
}

std::string status_summary(const Json& status) {
  const std::string label = status.value("label", ""), at = part(status, "mount").value("mount_point", "");
  const auto line = [](const char* name, const std::string& value) {
    return value.empty() ? "" : fmt::format("{:<9}{}\n", name, value);
  };
  const Json &cleaner = part(status, "cleaner"), &protection = part(status, "protection");
  return line("Varve", printable(status.value("device", "")) + (label.empty() ? "" : " \"" + printable(label) + "\"")) +
         line("Mounted", printable(at)) +
         line("State", state_of(status)) + line("Image", cut_text(status)) + line("Device", outage_text(status)) +
         line("Host", host_text(status)) +
         line("Size", room_of(part(status, "space"))) +
         line("Room", growth_text(status)) + line("Damage", damage_text(status)) +
         line("Kept", kept_text(part(status, "snapshots"), protection)) + line("Protects", protection_text(protection)) +
         line("Cleaner", cleaner.value("state", "")) +
         line("Log", printable(part(status, "mount").value("log", "")));
}

std::string status_text(const Json& status) {
  const auto section = [&status](const char* name, const char* title) { return section_text(status, name, title); };
  const Json& space = part(status, "space");
  return head_text(status) + section("lease", "Lease") + section("connection", "Connection to the device") +
         section("host", "Host of the image") + section("space", "Space") + section("space.segments", "Segments") +
         utilisation_text(space) + groups_text(space) + section("log", "Log") + profile_text(part(status, "device_profile")) +
         section("traffic", "Written since mount") + section("cleaner", "Cleaner") + section("waits", "Operations waited for") +
         scrub_section(status) + section("memory", "Memory") + section("lifetime", "Since it was made") +
         error_text(status, "first_error") + error_text(status, "last_error") + faults_text(status) + section("mount", "Mount");
}

}  // namespace varve::tool
