#include "varve/observe/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json_text.h"
#include "base/types.h"
#include "base/utf8.h"
#include "control/status_fields.h"
#include "varve/observe/latency_view.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

using control::FieldPath;

constexpr std::size_t kBar = 40;
constexpr std::size_t kRequestsShown = 8;

class View {
 public:
  View(const Json& before, const Json& now, double seconds) : before_(before), now_(now), seconds_(std::max(seconds, 1e-3)) {}

  std::string text() const {
    return head() + space() + rates() + cleaner() + log() + segments() + requests() + latency_lines(before_, now_);
  }

 private:
  std::uint64_t number(FieldPath path) const { return control::number_of(now_, path); }
  std::string words(FieldPath path) const { return control::words_of(now_, path); }
  std::uint64_t grown(FieldPath path) const {
    const std::uint64_t now = number(path);
    return now - std::min(now, control::number_of(before_, path));
  }
  double rate(FieldPath path) const { return static_cast<double>(grown(path)) / seconds_; }
  std::string rate_text(FieldPath path) const { return bytes_rate(rate(path) * (path->is_in_blocks() ? kBlockSize : 1)); }
  std::string size(FieldPath path) const { return size_text(control::bytes_of(now_, path)); }
  static std::string bytes_rate(double bytes) { return size_text(static_cast<std::uint64_t>(bytes)) + "/s"; }
  static std::size_t filled(double share) { return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBar + 0.5); }
  static std::string bar(double share) { return std::string(filled(share), '#') + std::string(kBar - filled(share), '.'); }
  static double share(std::uint64_t part, std::uint64_t whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  }

  std::string head() const {
    const std::uint64_t up = number("uptime_seconds");
    std::string text = fmt::format("{} on {}, mounted for {}:{:02}:{:02}, {}\n", printable(words("device")),
                                   printable(words("mount.mount_point")), up / 3600, up / 60 % 60, up % 60, words("backend"));
    if (control::flag_of(now_, "read_only")) text += fmt::format("READ-ONLY: {}\n", words("read_only_reason"));
    if (const std::string outage = outage_text(now_); !outage.empty()) text += outage + "\n";
    if (const std::string host = host_text(now_); !host.empty()) text += "Host: " + host + "\n";
    return text;
  }

  std::string space() const {
    const double live = share(number("space.live_blocks"), number("space.device_blocks"));
    return fmt::format("\nSpace      [{}] {:.1f} % of {} live, {} garbage, {} reserve\n", bar(live), 100 * live,
                       size("space.device_blocks"), size("space.garbage_blocks"), size("space.reserve_blocks")) +
           fmt::format("Segments   {} clean of {}, {} used, {} open, {} emptied\n", number("space.segments.clean"),
                       number("space.segments.total"), number("space.segments.used"), number("space.segments.open"),
                       number("space.segments.empty"));
  }

  // As the status reckons it (src/fs/status.h), of what came since the last view. Nothing written, no cost.
  std::string cost_now() const {
    const std::uint64_t user = grown("traffic.user_blocks_written");
    const std::uint64_t all = user + grown("traffic.cleaned_blocks_written") + grown("traffic.node_blocks_written") +
                              grown("traffic.chain_blocks_written");
    return user ? fmt::format("{:.3f}", static_cast<double>(all) / static_cast<double>(user)) : "-";
  }

  std::string rates() const {
    return fmt::format("\nWritten    {:>12} by users, {} to the device\n", rate_text("traffic.user_blocks_written"),
                       rate_text("traffic.device_bytes_written")) +
           fmt::format("           {:>12} log headers, {} metadata, {} moved by cleaning\n", rate_text("traffic.chain_blocks_written"),
                       rate_text("traffic.node_blocks_written"), rate_text("traffic.cleaned_blocks_written")) +
           fmt::format("Read       {:>12} from the device, {:.0f} flushes/s\n", rate_text("traffic.device_bytes_read"),
                       rate("log.flushes")) +
           fmt::format("Write cost {:>12} now, {:.3f} since the mount, {:.3f} over the lifetime\n", cost_now(),
                       control::factor_of(now_, "traffic.write_cost"), control::factor_of(now_, "traffic.lifetime_write_cost"));
  }

  std::string cleaner() const {
    std::string how = words("cleaner.strategy");
    for (const std::string& name : {words("cleaner.victim_policy"), words("cleaner.placement")})
      if (!name.empty()) how += (how.empty() ? "" : ", ") + name;
    const std::string state = words("cleaner.state"), decision = words("cleaner.decision");
    return fmt::format("Cleaner    {}\n{}           {:.1f} segments/s, {} read, {} written ({})\n", state,
                       state.ends_with(decision) ? "" : "           " + decision + "\n", rate("cleaner.segments_cleaned"),
                       rate_text("traffic.cleaned_blocks_read"), rate_text("traffic.cleaned_blocks_written"), how);
  }

  std::string log() const {
    return fmt::format("Log        {} to replay after a crash, {} records in {}, checkpoint {}{}\n",
                       size("log.log_bytes_since_checkpoint"), number("log.delta_records"), size("log.delta_bytes"), number("log.serial"),
                       control::flag_of(now_, "log.checkpoint_running") ? ", the next one running" : "");
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
