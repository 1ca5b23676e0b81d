// bench_replay: a trace of block I/O through device models. See README.md here.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "models/catalogue.h"
#include "trace/replay.h"

namespace {

using namespace varve::bench;
using Json = nlohmann::ordered_json;

struct Choice {
  std::string trace;
  std::vector<std::string> models;
  std::uint64_t mib = 0;
  std::string mode = "closed";
  double think = 1, stretch = 1, standby = 0;
  bool awake = false;
};

Json to_json(const Phase& phase, const Facts& facts) {
  static constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  const Work& work = phase.work;
  const std::uint64_t written = work[Op::write].bytes;
  Json out{{"phase", phase.name},
           {"seconds", phase.seconds},
           {"busy_seconds", static_cast<double>(work.busy_ns() + work.background_ns) * 1e-9},
           {"modelled_joules", phase.joules},
           {"seeks", work.seeks},
           {"bytes_programmed", work.programmed},
           {"bytes_copied", work.copied},
           {"erases", work.erases},
           {"write_amplification", written ? static_cast<double>(work.programmed) / static_cast<double>(written) : 0},
           {"spin_ups", work.energy.spin_ups}};
  if (facts.erase_cycles > 0 && work.erases > 0)  // bytes written by the host until all blocks are worn, if they wear evenly
    out["lifetime_bytes"] = static_cast<double>(written) * facts.erase_cycles * static_cast<double>(facts.size / facts.erase_unit) /
                            static_cast<double>(work.erases);
  for (std::size_t op = 0; op < kOps; ++op) {
    const Work::Kind& kind = work.kinds[op];
    out[kNames[op]] = {{"requests", kind.requests}, {"bytes", kind.bytes}, {"seconds", static_cast<double>(kind.ns) * 1e-9}};
  }
  for (std::size_t state = 0; state < kPowerStates; ++state) {
    const Energy::Spent& spent = work.energy.states[state];
    if (spent.seconds > 0)
      out["states"][name_of(static_cast<PowerState>(state))] = {{"seconds", spent.seconds},
                                                                {"modelled_joules", spent.joules + spent.seconds * facts.idle_watts}};
  }
  return out;
}

Json replay(const Choice& choice, const std::string& name) {
  const auto model = make_model(name, choice.mib << 20);
  if (!model) throw std::runtime_error("no model " + name + ": bench_replay --help lists them");
  if (choice.awake) model->power().stay_awake();
  model->power().stretch(choice.stretch);
  model->power().set_standby(choice.standby);
  Replay run(*model, choice.mode == "open" ? ReplayMode::open : ReplayMode::closed, choice.think);
  std::ifstream file;
  if (choice.trace != "-") file.open(choice.trace);
  std::istream& in = choice.trace == "-" ? std::cin : file;
  if (!in) throw std::runtime_error("cannot read " + choice.trace);
  const std::uint64_t size = model->facts().size;
  read_trace(in, {[&](const TracedRequest& event) {
                    if (event.request.end() > size || event.request.end() < event.request.offset)
                      throw std::invalid_argument("behind the end of the device: --size must be larger");
                    run.add(event);
                  },
                  [&](const std::string& mark) { run.mark(mark); }});
  Json phases = Json::array();
  for (const Phase& phase : run.finish()) phases.push_back(to_json(phase, model->facts()));
  return {{"model", name}, {"kind", model->facts().kind}, {"size_mib", choice.mib}, {"mode", choice.mode},
          {"most_erases_of_a_block", model->most_erases()}, {"phases", phases}};
}

std::string models() {
  std::string out = "\nModels:\n";
  for (const CatalogueEntry& entry : catalogue())
    out += "  " + std::string(entry.name) + std::string(20 - entry.name.size(), ' ') + std::string(entry.what) + "\n";
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  Choice choice;
  CLI::App app("A trace of block I/O through models of devices: seconds, joules (modelled), seeks, erases, as JSON.", "bench_replay");
  app.add_option("trace", choice.trace, "as `trace record` writes them; - for the standard input, with one model")->required();
  app.add_option("--model", choice.models)->delimiter(',')->required();
  app.add_option("--size", choice.mib, "of the device, MiB; a multiple of 32")->required()->check(CLI::Range(32, 1 << 26));
  app.add_option("--mode", choice.mode, "closed: as fast as the device allows; open: at the times of the trace")
      ->check(CLI::IsMember({"open", "closed"}));
  app.add_option("--think", choice.think, "share of the time between answers and next requests that is kept (closed)");
  app.add_flag("--awake", choice.awake, "the device never falls asleep (APM off)");
  app.add_option("--stretch", choice.stretch, "times as long until it does");
  app.add_option("--standby", choice.standby, "seconds until it stops its platters, where the model can; 0: never");
  app.footer(models());
  CLI11_PARSE(app, argc, argv);
  try {
    if (choice.trace == "-" && choice.models.size() > 1) throw std::runtime_error("the standard input can be read only once");
    Json all = Json::array();
    for (const std::string& name : choice.models) all.push_back(replay(choice, name));
    std::cout << all.dump(1) << "\n";
  } catch (const std::exception& error) {
    std::cerr << "bench_replay: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
