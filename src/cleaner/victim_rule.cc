#include "cleaner/victim_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace varve::cleaner {

namespace {

std::string_view usual_evaluation(std::string_view selection) {
  return selection == "d-choices" ? "greedy" : "cost-benefit";
}

}  // namespace

std::vector<PolicyName> victim_rules() {
  std::vector<PolicyName> names = registry().evaluations.names();
  for (PolicyName& selection : registry().selections.names())
    if (selection.name != "best") names.push_back(std::move(selection));
  return names;
}

Result<std::unique_ptr<VictimRule>> VictimRule::make(std::string_view spelling) {
  auto rule = std::make_unique<VictimRule>();
  rule->spelling_ = spelling;
  const auto plus = spelling.find('+');
  const std::string_view first = spelling.substr(0, plus);
  const std::string name = TRY(Parameters::parse(first)).name();
  if (plus != spelling.npos) {
    rule->evaluation_ = TRY(make_evaluation(first));
    rule->selection_ = TRY(make_selection(spelling.substr(plus + 1)));
  } else if (registry().evaluations.contains(name)) {
    rule->evaluation_ = TRY(make_evaluation(first));
    rule->selection_ = TRY(make_selection("best"));
  } else if (registry().selections.contains(name)) {
    rule->selection_ = TRY(make_selection(first));
    rule->evaluation_ = TRY(make_evaluation(usual_evaluation(name)));
  } else {
    std::vector<std::string> known;
    for (const PolicyName& rule_name : victim_rules()) known.push_back(rule_name.name);
    return Error(Errc::invalid, fmt::format("unknown victim policy '{}' (there are: {})", name, fmt::join(known, ", ")));
  }
  return rule;
}

}  // namespace varve::cleaner
