#include "varve/care/scrub_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/counted.h"
#include "base/types.h"
#include "base/utf8.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

std::uint64_t number(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

std::string time_text(std::uint64_t seconds) {
  if (seconds == 0) return "";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

std::string finding_text(const Json& finding) {
  const std::string kind = finding.value("kind", "");
  std::string text;
  if (kind == "data") {
    text = fmt::format("inode {}, {} from {}", number(finding, "inode"), counted(number(finding, "bytes"), "byte"),
                       number(finding, "offset"));
    const auto names = finding.value("names", Json::array());
    for (const auto& name : names) text += fmt::format("\n    {}", printable(name.get<std::string>()));
    if (names.empty()) text += "\n    (no name found)";
  } else if (kind == "node") {
    text = fmt::format("{} node of level {}", finding.value("tree", "?"), number(finding, "level"));
    if (finding.contains("first_inode"))
      text += fmt::format(", with it inodes {} to {}", number(finding, "first_inode"), number(finding, "last_inode"));
  } else {
    text = "superblock";
  }
  if (finding.contains("snapshot")) {
    const std::uint64_t older = number(finding, "snapshots") - 1;
    text = fmt::format("only in snapshot {}{}: {}", printable(finding.value("snapshot", "")),
                       older ? fmt::format(" and {} older", older) : "", text);
  }
  return fmt::format("  block {}: {}\n    {}\n", number(finding, "block"), finding.value("error", ""), text);
}

}  // namespace

double scrub_share(const Json& report) {
  const auto done = static_cast<double>(number(report, "verified_blocks"));
  return std::min(1.0, done / static_cast<double>(std::max<std::uint64_t>(number(report, "live_blocks"), 1)));
}

// Blocks that were freed or moved meanwhile are not among those that were verified, so a scrub that has finished tells no share.
std::string scrub_progress(const Json& report) {
  const std::string done = size_text(number(report, "verified_blocks") << kBlockShift);
  const std::uint64_t live = number(report, "live_blocks");
  const std::string all = fmt::format(" of {} ({:.0f} %)", size_text(live << kBlockShift), 100 * scrub_share(report));
  return fmt::format("{}{}, {}", done, report.value("state", "") == "finished" ? "" : all, counted(number(report, "errors"), "error")) +
         (number(report, "snapshot_errors") ? fmt::format(", {} of them only in snapshots", number(report, "snapshot_errors")) : "");
}

std::string scrub_text(const Json& report) {
  const std::string state = report.value("state", "never");
  if (state == "never") return "no scrub has been made yet\n";
  std::string text = fmt::format("{:<12}{}\n", "Scrub", state);
  if (const std::string reason = report.value("reason", ""); !reason.empty())
    text += fmt::format("{:<12}{}\n", "Because", reason);
  text += fmt::format("{:<12}{}\n", "Began", time_text(number(report, "started")));
  if (number(report, "finished")) text += fmt::format("{:<12}{}\n", "Ended", time_text(number(report, "finished")));
  text += fmt::format("{:<12}{}\n", "Verified", scrub_progress(report));
  const auto findings = report.value("findings", Json::array());
  for (const auto& finding : findings) text += finding_text(finding);
  if (number(report, "errors") > findings.size())
    text += fmt::format("  {} more before the last mount, or too many to keep: see the log\n",
                        number(report, "errors") - findings.size());
  return text;
}

}  // namespace varve::tool
