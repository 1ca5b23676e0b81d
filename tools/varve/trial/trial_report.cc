#include "varve/trial/trial_report.h"

#include <fmt/format.h>

namespace varve::tool {

namespace {

constexpr std::size_t kWorkColumns = 33, kColumns = 20;

std::string rate_text(double rate) { return fmt::format("{:.{}f}", rate, rate < 10 ? 2 : rate < 100 ? 1 : 0); }

std::string cell(const Outcome& outcome, const Outcome& first, bool is_first) {
  const std::string rate = fmt::format("{} {}", rate_text(outcome.rate), outcome.unit);
  if (is_first || outcome.rate <= 0) return rate;
  return fmt::format("{} (x{})", rate, rate_text(first.rate / outcome.rate));
}

std::string wait_text(const Outcome& outcome) {
  if (outcome.operations < 2) return "-";
  return fmt::format("{} / {} ms", rate_text(outcome.median_ms), rate_text(outcome.longest_ms));
}

template <class Cell>
std::string rows(const std::vector<Tried>& tried, const Cell& cell_of) {
  std::string text;
  for (std::size_t row = 0; row < tried[0].outcomes.size(); ++row) {
    std::string line = fmt::format("{:<{}}", tried[0].outcomes[row].work, kWorkColumns);
    for (std::size_t i = 0; i < tried.size(); ++i)
      line += fmt::format("{:<{}}", cell_of(tried[i].outcomes[row], tried[0].outcomes[row], i == 0), kColumns);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string heading(const std::string& what, const std::vector<Tried>& tried) {
  std::string line = fmt::format("{:<{}}", what, kWorkColumns);
  for (const Tried& one : tried) line += fmt::format("{:<{}}", one.name, kColumns);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

Json to_json(const TrialReport& report) {
  Json tried = Json::array();
  for (const Tried& one : report.tried) {
    Json outcomes = Json::array();
    for (const Outcome& outcome : one.outcomes) outcomes.push_back(to_json(outcome));
    tried.push_back({{"filesystem", one.name}, {"made", one.made}, {"work", outcomes}});
  }
  return {{"format", "varve trial 1"},
          {"machine", report.machine},
          {"device", report.device},
          {"file_bytes", report.effort.file_bytes},
          {"seconds_each", report.effort.seconds},
          {"tried", tried}};
}

std::string to_text(const TrialReport& report) {
  const auto& tried = report.tried;
  std::string text = heading("Speed", tried) + rows(tried, cell);
  const auto wait = [](const Outcome& one, const Outcome&, bool) { return wait_text(one); };
  text += "\n" + heading("Median / longest wait", tried) + rows(tried, wait);
  if (tried.size() > 1) text += fmt::format("\n(xN): {} is N times as fast.\n", tried[0].name);
  return text;
}

}  // namespace varve::tool
