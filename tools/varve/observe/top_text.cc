#include "varve/observe/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/types.h"
#include "base/utf8.h"
#include "varve/observe/latency_view.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

constexpr std::size_t kBar = 40;
constexpr std::size_t kRequestsShown = 8;

class View {
 public:
  View(const Json& before, const Json& now, double seconds) : before_(before), now_(now), seconds_(std::max(seconds, 1e-3)) {}

  std::string text() const {
    return head() + space() + rates() + cleaner() + log() + segments() + requests() + latency_lines(before_, now_);
  }

 private:
  static std::uint64_t number(const Json& status, const char* section, const char* key) {
    const auto found = status.find(section);
    return found == status.end() ? 0 : found->value(key, std::uint64_t{0});
  }
  static std::string words(const Json& status, const char* section, const char* key) {
    const auto found = status.find(section);
    return found == status.end() ? "" : found->value(key, "");
  }
  std::uint64_t number(const char* section, const char* key) const { return number(now_, section, key); }
  std::uint64_t grown(const char* section, const char* key) const {
    const std::uint64_t now = number(section, key);
    return now - (before_.is_null() ? 0 : std::min(now, number(before_, section, key)));
  }
  double rate(const char* section, const char* key) const { return static_cast<double>(grown(section, key)) / seconds_; }
  std::string blocks_rate(const char* key) const { return bytes_rate(rate("traffic", key) * kBlockSize); }
  static std::string bytes_rate(double bytes) { return size_text(static_cast<std::uint64_t>(bytes)) + "/s"; }
  static std::string size_of_blocks(std::uint64_t blocks) { return size_text(blocks << kBlockShift); }
  static std::size_t filled(double share) { return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBar + 0.5); }
  static std::string bar(double share) { return std::string(filled(share), '#') + std::string(kBar - filled(share), '.'); }
  static double share(std::uint64_t part, std::uint64_t whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  }

  std::string head() const {
    const std::uint64_t up = now_.value("uptime_seconds", std::uint64_t{0});
    std::string text = fmt::format("{} on {}, mounted for {}:{:02}:{:02}, {}\n", printable(now_.value("device", "")),
                                   printable(words(now_, "mount", "mount_point")), up / 3600, up / 60 % 60, up % 60,
                                   now_.value("backend", ""));
    if (now_.value("read_only", false)) text += fmt::format("READ-ONLY: {}\n", now_.value("read_only_reason", ""));
    if (const std::string outage = outage_text(now_); !outage.empty()) text += outage + "\n";
    if (const std::string host = host_text(now_); !host.empty()) text += "Host: " + host + "\n";
    return text;
  }

  std::string space() const {
    const std::uint64_t device = number("space", "device_blocks"), live = number("space", "live_blocks");
    const Json counts = now_.contains("space") ? now_["space"].value("segments", Json::object()) : Json::object();
    return fmt::format("\nSpace      [{}] {:.1f} % of {} live, {} garbage, {} reserve\n", bar(share(live, device)),
                       100 * share(live, device), size_of_blocks(device), size_of_blocks(number("space", "garbage_blocks")),
                       size_of_blocks(number("space", "reserve_blocks"))) +
           fmt::format("Segments   {} clean of {}, {} used, {} open, {} emptied\n", counts.value("clean", 0), counts.value("total", 0),
                       counts.value("used", 0), counts.value("open", 0), counts.value("empty", 0));
  }

  // As the status reckons it (src/fs/status.h), of what came since the last view. Nothing written, no cost.
  std::string cost_now() const {
    const std::uint64_t user = grown("traffic", "user_blocks_written");
    std::uint64_t all = user;
    for (const char* key : {"cleaned_blocks_written", "node_blocks_written", "chain_blocks_written"}) all += grown("traffic", key);
    return user ? fmt::format("{:.3f}", static_cast<double>(all) / static_cast<double>(user)) : "-";
  }

  std::string rates() const {
    return fmt::format("\nWritten    {:>12} by users, {} to the device\n", blocks_rate("user_blocks_written"),
                       bytes_rate(rate("traffic", "device_bytes_written"))) +
           fmt::format("           {:>12} log headers, {} metadata, {} moved by cleaning\n", blocks_rate("chain_blocks_written"),
                       blocks_rate("node_blocks_written"), blocks_rate("cleaned_blocks_written")) +
           fmt::format("Read       {:>12} from the device, {:.0f} flushes/s\n", bytes_rate(rate("traffic", "device_bytes_read")),
                       rate("log", "flushes")) +
           fmt::format("Write cost {:>12} now, {:.3f} since the mount, {:.3f} over the lifetime\n", cost_now(),
                       factor("write_cost"), factor("lifetime_write_cost"));
  }
  double factor(const char* key) const {
    const auto found = now_.find("traffic");
    return found != now_.end() && found->contains(key) && (*found)[key].is_number() ? (*found)[key].get<double>() : 0;
  }

  std::string cleaner() const {
    std::string how = words(now_, "cleaner", "strategy");
    for (const char* key : {"victim_policy", "placement"})
      if (const std::string name = words(now_, "cleaner", key); !name.empty()) how += (how.empty() ? "" : ", ") + name;
    const std::string decision = words(now_, "cleaner", "decision");
    return fmt::format("Cleaner    {}\n{}           {:.1f} segments/s, {} read, {} written ({})\n", words(now_, "cleaner", "state"),
                       decision.empty() ? "" : "           " + decision + "\n",
                       rate("cleaner", "segments_cleaned"), blocks_rate("cleaned_blocks_read"),
                       blocks_rate("cleaned_blocks_written"), how);
  }

  std::string log() const {
    return fmt::format("Log        {} to replay after a crash, {} records in {}, checkpoint {}{}\n",
                       size_text(number("log", "log_bytes_since_checkpoint")), number("log", "delta_records"),
                       size_text(number("log", "delta_bytes")), number("log", "serial"),
                       now_.contains("log") && now_["log"].value("checkpoint_running", false) ? ", the next one running" : "");
  }

  std::string segments() const {
    const auto found = now_.find("space");
    if (found == now_.end()) return "";
    std::string text;
    const auto counts = found->value("utilisation", std::vector<std::uint64_t>{});
    // Two steps of the status are one here: the view is to fit a terminal of 40 lines.
    std::vector<std::uint64_t> pairs;
    for (std::size_t i = 0; i + 1 < counts.size(); i += 2) pairs.push_back(counts[i] + counts[i + 1]);
    const std::uint64_t most = pairs.empty() ? 0 : *std::ranges::max_element(pairs);
    if (most) text += "\nUsed segments by share of live blocks\n";
    for (std::size_t i = 0; most && i < pairs.size(); ++i)
      text += fmt::format("  {:>3}-{:<3}% {:>8}  {}\n", i * 100 / pairs.size(), (i + 1) * 100 / pairs.size(), pairs[i],
                          std::string(filled(share(pairs[i], most)), '#'));
    return text + groups(*found);
  }

  static std::string groups(const Json& space) {
    if (!space.contains("groups") || space["groups"].empty()) return "";
    std::string text = "\nSegments by group:";
    const std::uint64_t blocks = space.value("segment_blocks", std::uint64_t{1});
    for (const Json& group : space["groups"]) {
      const std::uint64_t segments = group.value("segments", std::uint64_t{0});
      text += fmt::format("  {} {} ({:.0f} % live)", group["group"].is_string() ? group["group"].get<std::string>()
                                                     : json_text(group["group"]),
                          segments, 100 * share(group.value("live_blocks", std::uint64_t{0}), segments * blocks));
    }
    return text + "\n";
  }

  std::string requests() const {
    const Json now = now_.contains("mount") ? now_["mount"].value("requests", Json::object()) : Json::object();
    const Json before =
        !before_.is_null() && before_.contains("mount") ? before_["mount"].value("requests", Json::object()) : Json::object();
    std::vector<std::pair<double, std::string>> rates;
    for (const auto& [name, count] : now.items()) {
      const auto change = count.get<std::uint64_t>() - std::min(count.get<std::uint64_t>(), before.value(name, std::uint64_t{0}));
      if (change) rates.emplace_back(static_cast<double>(change) / seconds_, name);
    }
    std::ranges::sort(rates, std::greater<>());
    if (rates.size() > kRequestsShown) rates.resize(kRequestsShown);
    std::string text = "\nRequests/s:";
    for (const auto& [per_second, name] : rates) text += fmt::format("  {} {:.0f}", name, per_second);
    return text + "\n";
  }

  const Json& before_;
  const Json& now_;
  const double seconds_;
};

}  // namespace

std::string top_text(const Json& before, const Json& now, double seconds) { return View(before, now, seconds).text(); }

}  // namespace varve::tool
