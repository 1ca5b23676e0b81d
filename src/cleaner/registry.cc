#include "cleaner/registry.h"

#include <dlfcn.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cleaner/evaluation/builtin.h"
#include "cleaner/placement/builtin.h"
#include "cleaner/selection/builtin.h"
#include "cleaner/strategy/builtin.h"

namespace varve::cleaner {

template <class Plugin, class... Scale>
Status PluginTable<Plugin, Scale...>::add(std::string name, std::string help, Factory factory) {
  const Lock lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.name.name == name) return Error(Errc::exists, fmt::format("there is a {} '{}' already", kind_, name));
  entries_.push_back({{std::move(name), std::move(help)}, std::move(factory)});
  return {};
}

template <class Plugin, class... Scale>
bool PluginTable<Plugin, Scale...>::contains(std::string_view name) const {
  const Lock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name.name == name; });
}

template <class Plugin, class... Scale>
Result<std::unique_ptr<Plugin>> PluginTable<Plugin, Scale...>::make(std::string_view spelling,
                                                                    const Scale&... scale) const {
  const Parameters parameters = TRY(Parameters::parse(spelling));
  Factory factory;
  std::vector<std::string> known;
  {
    const Lock lock(mutex_);
    for (const Entry& entry : entries_) {
      known.push_back(entry.name.name);
      if (entry.name.name == parameters.name()) factory = entry.factory;
    }
  }
  if (!factory)
    return Error(Errc::invalid, fmt::format("unknown {} '{}' (there are: {})", kind_, parameters.name(), fmt::join(known, ", ")));
  auto plugin = factory(parameters, scale...);
  TRY(parameters.check());
  return plugin;
}

template <class Plugin, class... Scale>
std::vector<PolicyName> PluginTable<Plugin, Scale...>::names() const {
  const Lock lock(mutex_);
  std::vector<PolicyName> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

template class PluginTable<Evaluation>;
template class PluginTable<VictimSelection>;
template class PluginTable<Placement, PlacementScale>;
template class PluginTable<Strategy>;

unsigned group_count(const Parameters& parameters, const PlacementScale& scale, unsigned otherwise, unsigned least) {
  const unsigned usual = std::clamp(otherwise, least, std::max(scale.most_groups, least));
  return static_cast<unsigned>(parameters.number("groups", usual, least, format::kMaxGroups));
}

Registry::Registry() {
  struct Row {
    const char *name, *help;
  };
  auto evaluation = [&](Row row, auto* make) { (void)evaluations.add(row.name, row.help, make); };
  evaluation({"greedy", "most garbage first"}, make_greedy);
  evaluation({"cost-benefit", "(1-u)·age/(1+u); form=linear|sqrt, age=youngest|mean"}, make_cost_benefit);
  evaluation({"cost-hotness", "(1-u)/(2·u·hotness), as SFS"}, make_cost_hotness);
  evaluation({"age-threshold", "only the oldest compete, as F2FS's ATGC; older=, share=, weight="}, make_age_threshold);
  evaluation({"mdc", "minimum declining cost; cap=on|off"}, make_mdc);
  evaluation({"decline", "as mdc, with rates learned from how segments of like group and age decline; memory="}, make_decline);
  evaluation({"fifo", "in the order they were filled"}, make_fifo);
  evaluation({"timestamp", "by last change, as NILFS2; order=oldest|youngest"}, make_timestamp);
  evaluation({"reservoir", "cost-benefit with the age of a sample of blocks"}, make_reservoir);

  auto selection = [&](Row row, auto* make) { (void)selections.add(row.name, row.help, make); };
  selection({"best", "the highest scores"}, make_best);
  selection({"d-choices", "the best of some drawn by lot; d="}, make_d_choices);
  selection({"segregation", "the best and those of like age; window=, seed=best|oldest, stop=none|segment"},
            make_segregation);
  selection({"hybrid", "segregation while segments are mixed, best otherwise; window=, ratio=, share="}, make_hybrid);

  auto placement = [&](Row row, auto* make) { (void)placements.add(row.name, row.help, make); };
  placement({"none", "one group"}, make_unsplit);
  placement({"split", "users' blocks apart from moved ones"}, make_split);
  placement({"sfs", "by hotness; groups=, quantiser=iterative|equi-height|equi-width"}, make_sfs);
  placement({"dac", "up a level with each write, down with each move; groups="}, make_dac);
  placement({"sepbit", "by the life of the version replaced, moved blocks by age"}, make_sepbit);
  placement({"age-chain", "hot, then by number of moves, like MiDAS; groups="}, make_age_chain);
  placement({"interval", "by estimated rewrite interval, an octave each; groups=, offset="}, make_interval);
  placement({"learned", "by the rate at which blocks like it have died; groups=, least=, memory="}, make_learned);

  auto strategy = [&](Row row, auto* make) { (void)strategies.add(row.name, row.help, make); };
  strategy({"copying", "empties whole segments, to the heads of groups"}, make_copying);
  strategy({"compacting", "slides what is live toward the start of the device"}, make_compacting);
  strategy({"defragmenting", "makes files contiguous, in directory order; copies where room runs short"}, make_defragmenting);
  strategy({"hole-plugging", "empties segments into the holes of fuller ones; least=BLOCKS of a part, choice=ROOM per block"},
           make_hole_plugging);
  strategy({"threaded", "users' blocks go into holes; small=skip|split|compact, least=BLOCKS, when=always|short, clean=plugging|copying"},
           make_threaded);
  strategy({"combined", "copies what is emptier, plugs holes with what is fuller than pays"}, make_combined);
  strategy({"adaptive", "chooses by what there is to clean, time, cost of writes and power; power=auto|mains|battery"}, make_adaptive);
}

Registry& registry() {
  static Registry one;
  return one;
}

Result<std::unique_ptr<Evaluation>> make_evaluation(std::string_view spelling) {
  return registry().evaluations.make(spelling);
}
Result<std::unique_ptr<VictimSelection>> make_selection(std::string_view spelling) {
  return registry().selections.make(spelling);
}
Result<std::unique_ptr<Placement>> make_placement(std::string_view spelling, const PlacementScale& scale) {
  return registry().placements.make(spelling, scale);
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view spelling) {
  return registry().strategies.make(spelling);
}

Status load_plugin(const std::string& path) {
  auto problem = [&](std::string_view what) {
    return Error(Errc::invalid, fmt::format("plugin {}: {}", path, what));
  };
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return problem(::dlerror());
  const auto* version = static_cast<const unsigned*>(::dlsym(handle, "varve_cleaner_plugin_version"));
  void* entry = ::dlsym(handle, "varve_cleaner_plugin");
  if (!version || !entry) return problem("is no plugin for Varve's cleaner");
  if (*version != kPluginVersion)
    return problem(fmt::format("was built for version {} of the plugin interface, this is {}", *version, kPluginVersion));
  Status status;
  reinterpret_cast<void (*)(Registry*, Status*)>(entry)(&registry(), &status);
  return status;
}

}  // namespace varve::cleaner
