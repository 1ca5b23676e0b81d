#include "varve/observe/metrics_text.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "base/types.h"
#include "base/utf8.h"
#include "varve/observe/latency_view.h"

namespace varve::tool {

namespace {

using Labels = std::string;  // inside the braces

enum class Kind : std::uint8_t { counter, gauge, histogram, info };
constexpr const char* kKindNames[] = {"counter", "gauge", "histogram", "info"};

// What a sample's name has more than that of its family.
const char* suffix_of(Kind kind) { return kind == Kind::counter ? "_total" : kind == Kind::info ? "_info" : ""; }

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : printable(text)) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

// One number of the status, and what it is called outside.
struct Metric {
  const char* name;  // without _total
  Kind kind;
  const char* section;
  const char* key;
  double unit;  // of the status' number
  const char* help;
};

constexpr double kBlock = kBlockSize;
constexpr Metric kMetrics[] = {
    {"varve_device_bytes", Kind::gauge, "space", "device_blocks", kBlock, "Size of the filesystem."},
    {"varve_live_bytes", Kind::gauge, "space", "live_blocks", kBlock, "Blocks in use."},
    {"varve_garbage_bytes", Kind::gauge, "space", "garbage_blocks", kBlock,
     "Old versions that a cleaner has not collected."},
    {"varve_charged_bytes", Kind::gauge, "space", "charged_blocks", kBlock, "What counts as used by users."},
    {"varve_available_bytes", Kind::gauge, "space", "available_blocks", kBlock, "What users can still write, as df shows it."},
    {"varve_reserve_bytes", Kind::gauge, "space", "reserve_blocks", kBlock, "Kept for cleaning and checkpoints."},
    {"varve_snapshots", Kind::gauge, "snapshots", "count", 1, "Snapshots."},
    {"varve_snapshots_held_bytes", Kind::gauge, "snapshots", "held_bytes", 1, "Blocks that only snapshots need."},
    {"varve_automatic_snapshots", Kind::gauge, "protection", "snapshots", 1, "Snapshots that go by themselves."},
    {"varve_automatic_snapshots_held_bytes", Kind::gauge, "protection", "held_bytes", 1,
     "Blocks that only these need; they count as free."},
    {"varve_automatic_snapshots_given_up", Kind::counter, "protection", "given_up", 1, "Of these, for the room that they held."},
    {"varve_log_bytes", Kind::gauge, "log", "log_bytes_since_checkpoint", 1, "What a recovery would have to read."},
    {"varve_delta_bytes", Kind::gauge, "log", "delta_bytes", 1, "Memory of changes since the checkpoint."},
    {"varve_checkpoints", Kind::counter, "log", "checkpoints", 1, "Checkpoints since the mount."},
    {"varve_flushes", Kind::counter, "log", "flushes", 1, "Flushes of the device."},
    {"varve_user_written_bytes", Kind::counter, "traffic", "user_blocks_written", kBlock, "Written by users."},
    {"varve_chain_written_bytes", Kind::counter, "traffic", "chain_blocks_written", kBlock, "Log headers written."},
    {"varve_node_written_bytes", Kind::counter, "traffic", "node_blocks_written", kBlock, "Tree nodes written."},
    {"varve_cleaned_written_bytes", Kind::counter, "traffic", "cleaned_blocks_written", kBlock, "Moved by cleaning."},
    {"varve_device_written_bytes", Kind::counter, "traffic", "device_bytes_written", 1,
     "Written to the device in all."},
    {"varve_device_read_bytes", Kind::counter, "traffic", "device_bytes_read", 1, "Read from the device in all."},
    {"varve_device_writes", Kind::counter, "traffic", "device_writes", 1, "Write requests to the device."},
    {"varve_device_reads", Kind::counter, "traffic", "device_reads", 1, "Read requests to the device."},
    {"varve_device_connected", Kind::gauge, "connection", "connected", 1,
     "0: the device is a server's that cannot be reached now. Nothing for others."},
    {"varve_device_reconnects", Kind::counter, "connection", "reconnects", 1, "Connections that were lost and came back."},
    {"varve_host_full", Kind::gauge, "host", "full", 1,
     "1: the host has no room for what is written. It is held, and changes are refused until there is room."},
    {"varve_host_full_times", Kind::counter, "host", "times", 1, "How often the host had no room since the mount."},
    {"varve_held_bytes", Kind::gauge, "host", "held_bytes", 1, "Written, but held in memory until the host has room."},
    {"varve_write_cost_ratio", Kind::gauge, "traffic", "write_cost", 1,
     "Blocks written for each block of users since the mount."},
    {"varve_segments_cleaned", Kind::counter, "cleaner", "segments_cleaned", 1, "Segments emptied since the mount."},
    {"varve_pinned_segments", Kind::gauge, "cleaner", "pinned_segments", 1, "Segments that bad blocks keep in use."},
    {"varve_scrub_errors", Kind::gauge, "scrub", "errors", 1, "Damaged places that the newest scrub has found."},
    {"varve_scrub_finished_timestamp_seconds", Kind::gauge, "scrub", "finished", 1,
     "When the newest scrub came to its end, since 1970. 0: it has not, or there was none."},
    {"varve_node_cache_bytes", Kind::gauge, "memory", "node_cache_bytes", 1, "Memory of tree nodes."},
    {"varve_node_cache_hits", Kind::counter, "memory", "node_cache_hits", 1, "Tree nodes found in memory."},
    {"varve_node_cache_misses", Kind::counter, "memory", "node_cache_misses", 1, "Tree nodes read from the device."},
    {"varve_memory_limit_bytes", Kind::gauge, "memory", "memory_limit_bytes", 1, "Bound of the daemon's memory."},
    {"varve_lifetime_device_written_bytes", Kind::counter, "lifetime", "device_bytes", 1,
     "Written to the device since mkfs."},
    {"varve_lifetime_user_written_bytes", Kind::counter, "lifetime", "user_blocks", kBlock,
     "Written by users since mkfs."},
    {"varve_errors", Kind::counter, "lifetime", "errors", 1,
     "Errors of the device and damage found since mkfs. Alarm on any increase."},
    {"varve_unreadable", Kind::counter, "faults", "unreadable", 1, "Reads since the mount that the device failed."},
    {"varve_damaged", Kind::counter, "faults", "damaged", 1, "Reads since the mount of what did not match its checksum."},
    {"varve_bad_places", Kind::gauge, "faults", "places_last_day", 1,
     "Blocks of the device that could not be read, or were damaged, within a day. Replace the medium when it grows."},
    {"varve_device_read_errors", Kind::counter, "traffic", "device_read_errors", 1, "Read requests that the device failed."},
    {"varve_device_write_errors", Kind::counter, "traffic", "device_write_errors", 1,
     "Write and flush requests that the device failed."},
    {"varve_recoveries", Kind::counter, "lifetime", "recoveries", 1, "Mounts that had to recover since mkfs."},
};

std::string value_text(double value) {
  return value == static_cast<double>(static_cast<std::int64_t>(value))
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

class Exposition {
 public:
  explicit Exposition(MetricsFormat format) : is_older_(format == MetricsFormat::prometheus) {}

  void begin(const std::string& name, Kind kind, const char* help) {
    name_ = name;
    kind_ = kind;
    // The older format knows neither units nor infos, and a family has the name of its samples there.
    const std::string family = is_older_ ? name + suffix_of(kind) : name;
    const char* const kind_name = kKindNames[static_cast<unsigned>(is_older_ && kind == Kind::info ? Kind::gauge : kind)];
    text_ += fmt::format("# TYPE {} {}\n", family, kind_name);
    for (const char* unit : {"bytes", "seconds", "ratio"})
      if (!is_older_ && name.ends_with(std::string("_") + unit)) text_ += fmt::format("# UNIT {} {}\n", name, unit);
    text_ += fmt::format("# HELP {} {}\n", family, help);
  }
  void sample(const Labels& labels, double value) {
    text_ += fmt::format("{}{}{{{}}} {}\n", name_, suffix_of(kind_), labels, value_text(value));
  }
  // A bucket for each power of two: the same for all operations and mounts, so that they can be summed.
  void histogram(const Labels& labels, const LatencyHistogram& h) {
    std::map<unsigned, std::uint64_t> powers;
    for (const auto& [end, count] : h.buckets)
      if (end != ~std::uint64_t{0}) powers[static_cast<unsigned>(std::bit_width(end - 1))] += count;
    std::uint64_t sum = 0, all = 0;
    for (const auto& [end, count] : h.buckets) all += count;
    for (unsigned power = 0; power <= 26; ++power) {
      sum += powers[power];
      text_ +=
          fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name_, labels, static_cast<double>(1ULL << power) / 1e6, sum);
    }
    text_ += fmt::format("{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_count{{{1}}} {2}\n{0}_sum{{{1}}} {3}\n", name_, labels,
                         all, static_cast<double>(h.total_us) / 1e6);
  }
  std::string end() { return std::move(text_) + (is_older_ ? "" : "# EOF\n"); }

 private:
  const bool is_older_;
  std::string text_, name_;
  Kind kind_ = Kind::gauge;
};

Labels labels_of(const std::string& mount, const std::string& device) {
  return fmt::format("mount={},device={}", quoted(mount), quoted(device));
}

Labels labels_of(const Json& status) {
  return labels_of(status.value("mount", Json::object()).value("mount_point", ""), status.value("device", ""));
}

void add_numbers(Exposition& text, const std::vector<Json>& statuses) {
  for (const Metric& metric : kMetrics) {
    text.begin(metric.name, metric.kind, metric.help);
    for (const Json& status : statuses) {
      const Json section = status.value(metric.section, Json::object());
      if (const auto found = section.find(metric.key); found != section.end() && (found->is_number() || found->is_boolean()))
        text.sample(labels_of(status), (found->is_boolean() ? found->get<bool>() : found->get<double>()) * metric.unit);
    }
  }
}

void add_segments(Exposition& text, const std::vector<Json>& statuses) {
  text.begin("varve_segments", Kind::gauge, "Segments by state.");
  for (const Json& status : statuses) {
    const Json segments = status.value("space", Json::object()).value("segments", Json::object());
    for (const auto& [state, count] : segments.items())
      if (state != "total")
        text.sample(fmt::format("{},state={}", labels_of(status), quoted(state)), count.get<double>());
  }
}

void add_waits(Exposition& text, const std::vector<Json>& statuses) {
  const auto add = [&](const char* key, double unit) {
    for (const Json& status : statuses) {
      const Json waits = status.value("waits", Json::object());
      for (const auto& [cause, wait] : waits.items())
        text.sample(fmt::format("{},cause={}", labels_of(status), quoted(cause)), wait.value(key, 0.0) * unit);
    }
  };
  text.begin("varve_waits", Kind::counter, "How often operations had to wait, by what for.");
  add("times", 1);
  text.begin("varve_wait_seconds", Kind::counter, "How long operations waited, by what for.");
  add("total_us", 1e-6);
}

void add_latencies(Exposition& text, const std::vector<Json>& statuses) {
  text.begin("varve_request_seconds", Kind::histogram, "From the arrival of a request to its answer, by operation.");
  for (const Json& status : statuses)
    for (const LatencyHistogram& h : latencies_between(nullptr, status))
      text.histogram(fmt::format("{},operation={}", labels_of(status), quoted(h.operation)), h);
}

}  // namespace

std::string metrics_text(const std::vector<Json>& statuses, const std::vector<Outage>& outages, MetricsFormat format) {
  Exposition text(format);
  text.begin("varve_up", Kind::gauge, "1: its daemon answers. 0: it has ended without unmounting, or does not answer in time.");
  for (const Json& status : statuses) text.sample(labels_of(status), 1);
  for (const Outage& outage : outages) text.sample(labels_of(outage.mount, outage.device), 0);
  text.begin("varve_filesystem", Kind::info, "What it is called: its label and UUID.");
  for (const Json& status : statuses)
    text.sample(fmt::format("{},label={},uuid={}", labels_of(status), quoted(status.value("label", "")),
                            quoted(status.value("uuid", ""))), 1);
  text.begin("varve_read_only", Kind::gauge,
             "1: nothing can be written; without having been asked for it is after an error.");
  for (const Json& status : statuses) text.sample(labels_of(status), status.value("read_only", false) ? 1 : 0);
  text.begin("varve_mounted_seconds", Kind::gauge, "Since the mount.");
  for (const Json& status : statuses)
    text.sample(labels_of(status), static_cast<double>(status.value("uptime_seconds", std::uint64_t{0})));
  add_numbers(text, statuses);
  add_segments(text, statuses);
  add_waits(text, statuses);
  add_latencies(text, statuses);
  return text.end();
}

}  // namespace varve::tool
