#include "varve/observe/latency_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace varve::tool {

namespace {

constexpr std::size_t kShown = 8;
constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

Json latencies_of(const Json& status) {
  const auto mount = status.find("mount");
  return !status.is_object() || mount == status.end() ? Json::object() : mount->value("latencies", Json::object());
}

void add(LatencyHistogram& histogram, const Json& counted, std::int64_t sign) {
  const auto change = [sign](std::uint64_t& to, std::uint64_t by) { to = sign > 0 ? to + by : to - std::min(to, by); };
  change(histogram.times, counted.value("times", std::uint64_t{0}));
  change(histogram.total_us, counted.value("total_us", std::uint64_t{0}));
  std::map<std::uint64_t, std::uint64_t> buckets(histogram.buckets.begin(), histogram.buckets.end());
  for (const Json& bucket : counted.value("buckets", Json::array()))
    change(buckets[bucket[0].is_number() ? bucket[0].get<std::uint64_t>() : kNoEnd], bucket[1].get<std::uint64_t>());
  histogram.buckets.assign(buckets.begin(), buckets.end());
}

}  // namespace

std::uint64_t LatencyHistogram::quantile(double share) const {
  std::uint64_t all = 0, seen = 0;
  for (const auto& [end, count] : buckets) all += count;
  for (const auto& [end, count] : buckets) {
    seen += count;
    if (static_cast<double>(seen) >= share * static_cast<double>(all)) return end;
  }
  return 0;
}

std::vector<LatencyHistogram> latencies_between(const Json& before, const Json& now) {
  std::vector<LatencyHistogram> found;
  const Json old = latencies_of(before), present = latencies_of(now);
  for (const auto& [operation, counted] : present.items()) {
    LatencyHistogram histogram;
    histogram.operation = operation;
    add(histogram, counted, 1);
    if (old.contains(operation)) add(histogram, old[operation], -1);
    if (histogram.times) found.push_back(std::move(histogram));
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.times > b.times; });
  return found;
}

std::string latency_lines(const Json& before, const Json& now) {
  auto found = latencies_between(before, now);
  if (found.empty()) return "";
  if (found.size() > kShown) found.resize(kShown);
  std::string text = fmt::format("\n{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "Latency", "requests", "mean", "half in",
                                 "99 % in", "all in");
  for (const LatencyHistogram& h : found) {
    std::uint64_t last = 0;
    for (const auto& [end, count] : h.buckets)
      if (count) last = end;
    text += fmt::format("  {:<14}{:>10}{:>10}{:>10}{:>10}{:>10}\n", h.operation, h.times,
                        microseconds_text(h.total_us / h.times), microseconds_text(h.quantile(0.5)),
                        microseconds_text(h.quantile(0.99)), microseconds_text(last));
  }
  return text;
}

std::string microseconds_text(std::uint64_t us) {
  if (us == kNoEnd) return "> 1 min";
  if (us < 1000) return fmt::format("{} µs", us);
  if (us < 1'000'000) return fmt::format("{:.1f} ms", static_cast<double>(us) / 1e3);
  return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
}

}  // namespace varve::tool
