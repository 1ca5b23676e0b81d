// bench/cleaning: write amplification of policies, on the filesystem or in the simulator. See README.md here.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <fstream>

#include "base/json_text.h"
#include "engine_run.h"

namespace {

using namespace varve::bench;
using varve::Json;

struct Choice {
  std::vector<std::string> policies = {"decline/learned"};  // VICTIMS/PLACEMENT
  std::vector<std::string> workloads = {"zipf-0.8", "zipf-0.9", "zipf-1.0", "hotcold-10-90",
                                        "uniform",  "drift",    "phase",    "sequential"};
  std::vector<double> utilisations = {0.85, 0.9};
  unsigned seeds = 1;
  bool simulate = false;
  std::string json;
  RunSetup setup;
};

Json to_json(const RunSetup& setup, const RunResult& result, bool simulated) {
  return {{"victims", setup.victims},
          {"placement", setup.placement},
          {"strategy", setup.strategy},
          {"workload", setup.workload},
          {"seed", setup.seed},
          {"simulated", simulated},
          {"segments", setup.segments},
          {"segment_blocks", setup.segment_blocks},
          {"writes", setup.writes},
          {"asked_utilisation", setup.utilisation},
          {"blocks", result.blocks},
          {"utilisation", result.utilisation},
          {"write_amplification", result.write_amplification},
          {"bound", result.bound},
          {"gap", result.gap()},
          {"metadata", result.metadata},
          {"headers", result.headers},
          {"refilled", result.refilled},
          {"moved_per_segment", result.moved_per_segment},
          {"fragments", result.fragments},
          {"course", result.course}};
}

void print_heading() {
  fmt::print("{:14} {:6} {:14} {:24} {:20} {:>4} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>7} {:>6} {:>5} {:>9}\n",
             "workload", "asked", "strategy", "victims",
             "placement", "seed", "N", "u", "WA", "bound", "gap", "metadata", "headers", "holes", "moved", "fragments");
}

void print_row(const RunSetup& setup, const RunResult& result) {
  auto number = [](double value) { return value > 0 ? fmt::format("{:.3f}", value) : std::string("-"); };
  fmt::print("{:14} {:<6} {:14} {:24} {:20} {:>4} {:>8} {:>7.4f} {:>7.3f} {:>7} {:>7} {:>8} {:>7} {:>6.3f} {:>5.0f} {:>9}\n",
             setup.workload,
             setup.utilisation, setup.strategy, setup.victims, setup.placement, setup.seed, result.blocks, result.utilisation,
             result.write_amplification, number(result.bound), number(result.gap()), number(result.metadata),
             number(result.headers), result.refilled, result.moved_per_segment, result.fragments);
  std::fflush(stdout);
}

void run(Choice& choice) {
  Json rows = Json::array();
  print_heading();
  for (double utilisation : choice.utilisations)
    for (const std::string& workload : choice.workloads)
      for (const std::string& policy : choice.policies)
        for (unsigned seed = 1; seed <= choice.seeds; ++seed) {
          RunSetup setup = choice.setup;
          const auto slash = policy.find('/');
          setup.victims = policy.substr(0, slash);
          setup.placement = slash == policy.npos ? "none" : policy.substr(slash + 1);
          setup.workload = workload;
          setup.utilisation = utilisation;
          setup.seed = seed;
          const RunResult result = choice.simulate ? simulate(setup) : run_on_engine(setup);
          print_row(setup, result);
          rows.push_back(to_json(setup, result, choice.simulate));
          if (!choice.json.empty()) std::ofstream(choice.json) << rows.dump(1) << "\n";  // as far as it has come
        }
}

}  // namespace

int main(int argc, char** argv) {
  Choice choice;
  CLI::App app("Write amplification of cleaning policies, beside what is possible.", "bench_cleaning");
  app.add_option("--policy", choice.policies, "VICTIMS/PLACEMENT, as for mount options")->delimiter(',');
  app.add_option("--strategy", choice.setup.strategy, "as for mount options; the simulator knows copying only");
  app.add_option("--workload", choice.workloads)->delimiter(',');
  app.add_option("-u,--utilisation", choice.utilisations, "effective, about")->delimiter(',');
  app.add_option("--seeds", choice.seeds, "runs of each, with seeds from 1 on");
  app.add_option("--segments", choice.setup.segments);
  app.add_option("--segment-blocks", choice.setup.segment_blocks, "of 4 KiB");
  app.add_option("--writes", choice.setup.writes, "updates, in numbers of live blocks");
  app.add_option("--measured", choice.setup.measured, "the last part of them that counts");
  app.add_flag("--simulate", choice.simulate, "metadata only: a hundred times faster");
  app.add_option("--json", choice.json, "file for the results");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::warn);
  try {
    run(choice);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cleaning: {}\n", error.what());
    return 1;
  }
  return 0;
}
