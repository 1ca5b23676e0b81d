// bench/cleaning: figures of published work on cleaning, made again with this filesystem. See README.md here.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "base/json_text.h"
#include "fragmentation_study.h"
#include "policies_study.h"
#include "sfs_study.h"

namespace {

using namespace varve::bench;
using varve::Json;

struct Study {
  CLI::App* command;
  std::function<Json()> run;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* help, bool& quick, std::uint64_t& seed) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("--seed", seed);
  command->add_flag("--quick", quick, "small and short: does it work? Its numbers mean nothing");
  return command;
}

Study policies(CLI::App& app, PoliciesSetup& setup) {
  CLI::App* command = add_command(app, "policies", "policies in NILFS2 (Wang, Xu 2025)", setup.quick, setup.seed);
  command->add_option("--counts", setup.counts, "writes after which distributions are shown, ascending")->delimiter(',');
  command->add_option("--policies", setup.policies, "of the distributions; cost-benefit and greedy for the cost")->delimiter(',');
  command->add_flag("!--no-distributions", setup.distributions);
  command->add_flag("!--no-costs", setup.costs);
  command->add_option("--every", setup.every, "writes between two forced cleans");
  command->add_option("--victims", setup.victims, "segments that one takes");
  command->add_option("--room", setup.room, "clean segments from which on it does nothing");
  command->add_option("--window", setup.window, "of segregation, blocks of log clock");
  command->add_option("--occupancies", setup.occupancies, "of the write cost")->delimiter(',');
  command->add_option("--volumes", setup.volumes, "written for each of them");
  return {command, [&setup] {
            if (setup.quick) setup.counts = {2'500}, setup.occupancies = {0.4}, setup.volumes = 3;
            return run_policies_study(setup);
          }};
}

Study sfs(CLI::App& app, SfsSetup& setup) {
  CLI::App* command = add_command(app, "sfs", "grouping by hotness (Min et al., FAST 2012)", setup.quick, setup.seed);
  command->add_option("--segments", setup.segments);
  command->add_option("--segment-blocks", setup.segment_blocks, "of 4 KiB");
  command->add_option("--warm-up", setup.warm_up, "writes before those that count, in numbers of the workload's blocks");
  command->add_option("--measured", setup.measured, "writes that count");
  command->add_option("--utilisations", setup.utilisations)->delimiter(',');
  command->add_option("--write-bandwidth", setup.device.sequential_write, "MB/s");
  command->add_option("--read-bandwidth", setup.device.random_read, "MB/s, of 4 KiB at random");
  command->add_flag("!--no-groups", setup.groups, "leave out figures 5 to 7");
  command->add_flag("!--no-utilisations", setup.by_utilisation, "leave out figures 8 to 10");
  return {command, [&setup] {
            if (setup.quick) {
              setup.segments = 100, setup.segment_blocks = 128;
              setup.warm_up = setup.measured = 1.5;
              setup.utilisations = {0.8};
            }
            return run_sfs_study(setup);
          }};
}

Study fragmentation(CLI::App& app, FragmentationSetup& setup, bool& quick) {
  CLI::App* command = add_command(app, "fragmentation", "strategies on fragmented files (Janda, ScherlFS)", quick, setup.seed);
  command->add_option("--samples", setup.samples)->delimiter(',');
  command->add_option("--strategies", setup.strategies)->delimiter(',');
  command->add_option("--buffers", setup.buffers, "blocks that cleaning keeps in memory; 0: as usual")->delimiter(',');
  command->add_option("--record", setup.record_to, "write each sample's operations to this, with its name appended");
  command->add_option("--replay", setup.replay_from, "take them from there");
  command->add_option("--traces", setup.traces_to, "write the device I/O of each cleaning and reading to this, with its name appended");
  command->add_option("--segments", setup.segments, "of 128 blocks");
  return {command, [&setup, &quick] {
            if (quick) setup.scale = 0.05, setup.segment_blocks = 64, setup.segments = 200;
            return run_fragmentation_study(setup);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Figures of published work on cleaning, made again.", "bench_published");
  std::string json;
  app.add_option("--json", json, "file for the results");
  app.require_subcommand(1);
  PoliciesSetup policies_setup;
  SfsSetup sfs_setup;
  FragmentationSetup fragmentation_setup;
  bool quick = false;
  const std::vector<Study> studies = {policies(app, policies_setup), sfs(app, sfs_setup),
                                      fragmentation(app, fragmentation_setup, quick)};
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::warn);
  try {
    for (const Study& study : studies)
      if (study.command->parsed()) {
        const Json result = study.run();
        if (!json.empty()) std::ofstream(json) << result.dump(1) << "\n";
      }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_published: {}\n", error.what());
    return 1;
  }
  return 0;
}
