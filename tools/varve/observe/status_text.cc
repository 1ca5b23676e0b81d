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
#include "varve/observe/past_errors.h"

namespace varve::tool {

namespace {

// Lines of a section; those about what the status does not have are left out.
class Section {
 public:
  Section(const char* title, const Json& values) : values_(values) { text_ = fmt::format("\n{}\n", title); }

  std::uint64_t number(const char* key) const { return values_.value(key, std::uint64_t{0}); }
  bool has(const char* key) const { return values_.contains(key); }

  Section& line(const char* label, const std::string& value) {
    text_ += fmt::format("  {:<26}{}\n", label, value);
    empty_ = false;
    return *this;
  }
  Section& count(const char* label, const char* key) {
    return has(key) ? line(label, fmt::format("{}", number(key))) : *this;
  }
  Section& blocks(const char* label, const char* key, std::uint64_t whole = 0) {
    return has(key) ? size(label, number(key) << kBlockShift, whole << kBlockShift) : *this;
  }
  Section& bytes(const char* label, const char* key) { return has(key) ? size(label, number(key), 0) : *this; }
  Section& factor(const char* label, const char* key) {
    return has(key) && values_[key].is_number() ? line(label, fmt::format("{:.3f}", values_[key].get<double>()))
                                                : *this;
  }
  Section& words(const char* label, const char* key) {
    const std::string text = has(key) && values_[key].is_string() ? values_[key].get<std::string>() : "";
    return text.empty() ? *this : line(label, printable(text));
  }
  Section& yes_no(const char* label, const char* key) {
    return has(key) ? line(label, values_.value(key, false) ? "yes" : "no") : *this;
  }
  std::string text() const { return empty_ ? "" : text_; }

 private:
  Section& size(const char* label, std::uint64_t value, std::uint64_t whole) {
    std::string text = size_text(value);
    if (whole) text += fmt::format(" ({:.1f} %)", 100.0 * static_cast<double>(value) / static_cast<double>(whole));
    return line(label, text);
  }

  const Json& values_;
  std::string text_;
  bool empty_ = true;
};

const Json& part(const Json& status, const char* key) {
  static const Json kNothing = Json::object();
  return status.contains(key) && status[key].is_object() ? status[key] : kNothing;
}

std::uint64_t number_in(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} days {} h", seconds / 86400, seconds / 3600 % 24);
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
  Section section("Varve filesystem", status);
  section.words("Device", "device").words("Label", "label").words("UUID", "uuid").words("State", "state");
  section.words("I/O", "backend").yes_no("Read-only", "read_only").words("Because", "read_only_reason");
  if (const std::string damage = damage_text(status); !damage.empty()) section.line("Damage", damage);
  if (status.contains("uptime_seconds")) section.line("Mounted for", duration_text(section.number("uptime_seconds")));
  return section.text().substr(1);
}

std::string lease_text(const Json& lease) {
  Section section("Lease", lease);
  section.yes_no("Held", "held").words("Lost because", "lost_because").words("Holder", "holder");
  section.yes_no("Others may reach it", "others_may_reach_it").count("Last look (ms ago)", "last_look_ms");
  return section.text();
}

std::string connection_section(const Json& connection) {
  Section section("Connection to the device", connection);
  return section.yes_no("Connected", "connected").count("Connected anew", "reconnects").text();
}

std::string host_section(const Json& host) {
  Section section("Host of the image", host);
  return section.yes_no("Has no room", "full").bytes("Held in memory", "held_bytes").count("Had no room (times)", "times").text();
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

std::string space_text(const Json& space) {
  Section section("Space", space);
  const std::uint64_t whole = section.number("device_blocks");
  section.blocks("Device", "device_blocks")
      .blocks("Live", "live_blocks", whole)
      .blocks("Garbage", "garbage_blocks", whole);
  section.blocks("  freed by a checkpoint", "reclaimable_blocks", whole).blocks("Reserve", "reserve_blocks", whole);
  section.blocks("Charged to users", "charged_blocks", whole).blocks("Segment", "segment_blocks");
  std::string text = section.text();
  if (space.contains("segments")) {
    Section counts("Segments", space["segments"]);
    counts.count("Total", "total").count("Clean", "clean").count("Open", "open");
    counts.count("Open for holes", "refilling").count("Empty, to be settled", "empty");
    counts.count("Used", "used");
    text += counts.text();
  }
  return text + utilisation_text(space) + groups_text(space);
}

std::string log_text(const Json& log) {
  Section section("Log", log);
  section.count("Last chunk", "lsn").count("Durable up to", "durable_lsn").count("Chunks written", "chunks");
  section.count("Flushes", "flushes").bytes("Waiting to be written", "pending_bytes");
  section.bytes("To replay after a crash", "log_bytes_since_checkpoint").count("Records in memory", "delta_records");
  section.bytes("Memory of records", "delta_bytes")
      .count("Settled checkpoint", "serial")
      .count("Checkpoints", "checkpoints");
  section.yes_no("Checkpoint running", "checkpoint_running").count("Chunks replayed at mount", "replayed_chunks");
  return section.text();
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

std::string traffic_text(const Json& traffic) {
  Section section("Written since mount", traffic);
  section.blocks("By users", "user_blocks_written").blocks("Data for users", "data_blocks_written");
  section.blocks("Log headers", "chain_blocks_written").blocks("Metadata nodes", "node_blocks_written");
  section.blocks("Moved by cleaning", "cleaned_blocks_written");
  section.blocks("Of all, into holes", "refilled_blocks_written").bytes("To the device, in all", "device_bytes_written");
  section.bytes("From the device", "device_bytes_read").factor("Write cost", "write_cost");
  section.factor("Write cost, lifetime", "lifetime_write_cost");
  return section.text();
}

std::string cleaner_text(const Json& cleaner) {
  Section section("Cleaner", cleaner);
  section.yes_no("Running", "running").words("State", "state").words("Strategy", "strategy");
  section.words("Decision", "decision").words("Policy", "victim_policy");
  section.words("Placement", "placement");
  section.count("Segments cleaned", "segments_cleaned").count("Pinned by bad blocks", "pinned_segments");
  return section.text();
}

// What operations waited for, and how long it took.
std::string waits_text(const Json& waits) {
  static constexpr std::pair<const char*, const char*> kCauses[] = {
      {"node", "Tree nodes"},          {"data", "Blocks of files"},    {"durable", "Flushes"},
      {"memory", "Memory for changes"}, {"space", "Clean segments"}, {"in_flight", "Writes on their way"}};
  std::string text;
  for (const auto& [key, label] : kCauses) {
    const Json& wait = part(waits, key);
    const std::uint64_t times = wait.value("times", std::uint64_t{0});
    if (times == 0) continue;
    const double mean = wait.value("total_us", 0.0) / static_cast<double>(times);
    text += fmt::format("  {:<26}{}, {:.2f} ms each, {:.2f} at most\n", label, counted(times, "time"), mean / 1000,
                        wait.value("longest_us", 0.0) / 1000);
  }
  return text.empty() ? "" : "\nOperations waited for\n" + text;
}

std::string scrub_section(const Json& scrub) {
  Section section("Scrub", scrub);
  if (scrub.value("state", "never") == "never") return "";
  section.words("State", "state").words("Because", "reason");
  if (section.number("started")) section.line("Began", local_time_text(scrub.value("started", std::int64_t{0})));
  section.blocks("Verified", "verified_blocks").blocks("Live", "live_blocks").count("Errors", "errors");
  return section.text();
}

std::string memory_text(const Json& memory) {
  Section section("Memory", memory);
  section.bytes("Limit", "memory_limit_bytes")
      .bytes("Tree nodes", "node_cache_bytes")
      .count("  hits", "node_cache_hits");
  section.count("  misses", "node_cache_misses").count("Inodes cached", "inodes_cached");
  section.count("Inodes the kernel holds", "references");
  return section.text();
}

std::string lifetime_text(const Json& lifetime) {
  Section section("Since it was made", lifetime);
  section.blocks("Written by users", "user_blocks").blocks("Moved by cleaning", "cleaned_blocks");
  section.blocks("Metadata nodes", "node_blocks").blocks("Log headers", "chain_blocks");
  section.bytes("To the device, in all", "device_bytes").count("Checkpoints", "checkpoints").count("Mounts", "mounts");
  section.count("Recoveries", "recoveries").count("Segments cleaned", "segments_cleaned").count("Errors", "errors");
  return section.text();
}

std::string error_text(const char* title, const Json& event) {
  Section section(title, event);
  section.words("Error", "error");
  if (section.number("block")) section.count("Block", "block");
  if (section.number("inode")) section.count("Inode", "inode");
  if (section.has("seconds")) section.line("When", local_time_text(event.value("seconds", std::int64_t{0})));
  return section.text();
}

std::string faults_text(const Json& faults) {
  Section section("Errors since the mount", faults);
  if (section.number("unreadable") + section.number("damaged") + section.number("other") == 0) return "";
  section.count("Reads that failed", "unreadable").count("Reads of damaged blocks", "damaged").count("Others", "other");
  section.count("Bad blocks, last hour", "places_last_hour").count("Bad blocks, last day", "places_last_day");
  return section.text();
}

std::string mount_text(const Json& mount) {
  Section section("Mount", mount);
  section.words("At", "mount_point")
      .count("Process", "pid")
      .count("Serving threads", "threads")
      .words("FUSE", "protocol")
      .words("Options", "options")
      .words("Log", "log");
  if (mount.contains("features")) {
    std::string names;
    for (const auto& name : mount["features"]) names += (names.empty() ? "" : " ") + name.get<std::string>();
    section.line("Features", names);
  }
  return section.text();
}

}  // namespace

std::string local_time_text(std::int64_t seconds) {
  const std::time_t when = seconds;
  std::tm parts{};
  char text[64] = "";
  if (::localtime_r(&when, &parts)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts);
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
         line("State", state_of(status)) + line("Device", outage_text(status)) + line("Host", host_text(status)) +
         line("Size", room_of(part(status, "space"))) +
         line("Room", growth_text(status)) + line("Damage", damage_text(status)) +
         line("Kept", kept_text(part(status, "snapshots"), protection)) + line("Protects", protection_text(protection)) +
         line("Cleaner", cleaner.value("state", "")) +
         line("Log", printable(part(status, "mount").value("log", "")));
}

std::string status_text(const Json& status) {
  return head_text(status) + lease_text(part(status, "lease")) + connection_section(part(status, "connection")) +
         host_section(part(status, "host")) +
         space_text(part(status, "space")) + log_text(part(status, "log")) +
         profile_text(part(status, "device_profile")) + traffic_text(part(status, "traffic")) + cleaner_text(part(status, "cleaner")) +
         waits_text(part(status, "waits")) + scrub_section(part(status, "scrub")) +
         memory_text(part(status, "memory")) + lifetime_text(part(status, "lifetime")) +
         error_text("First error", part(status, "first_error")) + error_text("Last error", part(status, "last_error")) +
         faults_text(part(status, "faults")) + mount_text(part(status, "mount"));
}

}  // namespace varve::tool
