#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>

#include "base/counted.h"
#include "base/json_text.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/observe/history_text.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct HistoryArguments {
  std::string directory;
  bool json = false;
  bool follow = false;
};

// Those after `last`, which becomes the number of the latest.
Status print_new(const HistoryArguments& arguments, std::uint64_t& last, IoLayer& io) {
  Volume client = TRY(Volume::of_mount(arguments.directory));  // anew each time: it must not keep the mount busy
  const Json rounds = TRY(client.ask("history"));
  for (const Json& round : rounds) {
    const auto number = round.value("round", std::uint64_t{0});
    if (number <= last) continue;
    if (last && number > last + 1 && !arguments.json)
      io.out << fmt::format("… {} not kept\n", counted(number - last - 1, "round was", "rounds were"));
    last = number;
    io.out << (arguments.json ? json_text(round) : history_line(round)) << "\n";
  }
  io.out << std::flush;
  return {};
}

Status history(HistoryArguments arguments, IoLayer& io) {
  arguments.directory = TRY(control::find_mounted(arguments.directory));
  std::uint64_t last = 0;
  if (!arguments.json) io.out << history_heading();
  do {
    TRY(print_new(arguments, last, io));
    if (!last && !arguments.json && !arguments.follow) io.out << "No round of cleaning since the mount.\n";
    if (arguments.follow) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  } while (arguments.follow && io.out.good());
  return {};
}

}  // namespace

void declare_history(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<HistoryArguments>();
  CLI::App* command = app.add_subcommand("history", "How full segments were before each round of cleaning, and what it did");
  command->add_option("directory", arguments->directory, "Where it is mounted")->required();
  command->add_flag("--json", arguments->json, "For programs: a line for each round");
  command->add_flag("-f,--follow", arguments->follow, "Go on with those that come, until Ctrl-C");
  command->footer("The daemon keeps the latest 512 rounds; `varve tune DIR history=N`: N of them, 0 to note none.\n");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return history(*arguments, io); }; });
}

}  // namespace varve::tool
