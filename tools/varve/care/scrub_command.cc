#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include "base/counted.h"
#include "base/json_text.h"
#include "control/place.h"
#include "scrub/state.h"
#include "shared/interruptible.h"
#include "shared/size_value.h"
#include "varve/care/scrub_names.h"
#include "varve/care/scrub_text.h"
#include "varve/command.h"
#include "varve/progress.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct ScrubArguments {
  std::string directory;
  std::uint64_t bytes_per_second = scrub::Request::kUsualRate;
  bool restart = false;
  bool background = false;
  bool stop = false;
  bool status = false;
  bool json = false;
};

Status start(Volume& volume, const ScrubArguments& arguments) {
  if (arguments.stop) return volume.tell("scrub_stop");
  return volume.tell("scrub_start", {{"bytes_per_second", arguments.bytes_per_second}, {"from_the_beginning", arguments.restart}});
}

Result<Json> work(Volume& volume, const ScrubArguments& arguments, IoLayer& io) {
  const Interruptible interruptible;
  TRY(start(volume, arguments));
  if (arguments.background) return volume.ask("scrub_report");
  return wait_for_end(volume, {"scrub", scrub_progress, scrub_share, !arguments.json, std::chrono::seconds(1)}, io);
}

// The key of a finding under which its inode is found, and the folder below which that is looked for.
struct Search {
  const char* key;
  std::string folder;
  auto operator<=>(const Search&) const = default;
};

std::optional<Search> search_of(const Json& finding, const std::string& directory) {
  if (finding.contains("shown_inode"))
    return Search{"shown_inode", directory + "/" + finding.value("shown_in", "") + "/" + finding.value("snapshot", "")};
  if (!finding.contains("inode") || finding.contains("snapshot")) return std::nullopt;
  return Search{"inode", directory};
}

// One walk through what is in use, and one through each snapshot in which something is damaged.
void add_names(Json& report, const std::string& directory) {
  std::map<Search, std::set<std::uint64_t>> wanted;
  for (const auto& finding : report["findings"])
    if (const auto search = search_of(finding, directory)) wanted[*search].insert(finding[search->key].get<std::uint64_t>());
  std::map<Search, std::map<std::uint64_t, std::vector<std::string>>> found;
  for (const auto& [search, inodes] : wanted) found[search] = find_names(search.folder, inodes);
  for (auto& finding : report["findings"]) {
    const auto search = search_of(finding, directory);
    if (!search) continue;
    const auto& names = found[*search];
    if (const auto at = names.find(finding[search->key].get<std::uint64_t>()); at != names.end()) finding["names"] = at->second;
  }
}

Status scrub(ScrubArguments arguments, IoLayer& io) {
  arguments.directory = TRY(control::find_mounted(arguments.directory));
  Volume volume = TRY(Volume::open(arguments.directory, "varve scrub", Volume::Use::looks));
  Json state = TRY(arguments.status ? volume.ask("scrub_report") : work(volume, arguments, io));
  add_names(state, arguments.directory);
  io.answered = true;
  io.out << (arguments.json ? json_text(state, 2) + "\n" : scrub_text(state)) << std::flush;
  if (arguments.stop || arguments.status || arguments.background) return {};
  if (const auto errors = state.value("errors", std::uint64_t{0}))
    return Error(Errc::corrupt, fmt::format("{}: {} damaged", arguments.directory, counted(errors, "place is", "places are")));
  const std::string end = state.value("state", "");
  if (end == "failed") return Error(Errc::io, fmt::format("{}: {}", arguments.directory, state.value("reason", "")));
  if (end == "stopped")
    return Error(Errc::interrupted, fmt::format("{}: stopped before its end; the next scrub goes on from there", arguments.directory));
  return {};
}

}  // namespace

void declare_scrub(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ScrubArguments>();
  CLI::App* command = app.add_subcommand("scrub", "Verify everything on the device while it is in use");
  command->add_option("directory", arguments->directory, "Where it is mounted")->required();
  command->add_option("-r,--rate", arguments->bytes_per_second, "Bytes to read per second, with K, M or G; 0: no limit")
      ->transform(rate_value())
      ->default_str("64M");
  auto* restart = command->add_flag("--restart", arguments->restart, "From the beginning, not where it was stopped");
  auto* background = command->add_flag("-b,--background", arguments->background, "Begin, but do not wait for the end");
  auto* stop = command->add_flag("--stop", arguments->stop, "Stop it; the next one goes on from there");
  auto* status = command->add_flag("--status", arguments->status, "Only tell how far it is and what it found");
  stop->excludes(restart)->excludes(background)->excludes(status);
  status->excludes(restart)->excludes(background);
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return scrub(*arguments, io); }; });
}

}  // namespace varve::tool
