#include "varve/observe/metrics_text.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "base/types.h"
#include "base/utf8.h"
#include "control/status_fields.h"
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
  for (const control::Field& field : control::kFields) {
    if (field.metric.kind == control::Metric::Kind::none) continue;
    text.begin(field.metric.name, field.metric.kind == control::Metric::Kind::counter ? Kind::counter : Kind::gauge, field.meaning);
    for (const Json& status : statuses) {
      const Json& value = control::value_of(status, field);
      if (!value.is_number() && !value.is_boolean()) continue;
      const double number = value.is_boolean() ? value.get<bool>() : value.get<double>();
      text.sample(labels_of(status), field.is_in_blocks() ? number * kBlockSize : number);
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
  add_numbers(text, statuses);
  add_segments(text, statuses);
  add_waits(text, statuses);
  add_latencies(text, statuses);
  return text.end();
}

}  // namespace varve::tool
