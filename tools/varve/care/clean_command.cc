#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

#include "base/errc.h"
#include "base/json_text.h"
#include "cleaner/registry.h"
#include "control/place.h"
#include "shared/interruptible.h"
#include "shared/size_value.h"
#include "varve/care/clean_target.h"
#include "varve/care/clean_text.h"
#include "varve/command.h"
#include "varve/progress.h"

namespace varve::tool {

namespace {

struct CleanArguments {
  fs::CleanRequest request;
  std::uint64_t free_bytes = 0, move_bytes = 0;
  bool all = false, json = false;
  std::vector<std::string> places;  // paths, then the mount or image
};

Result<Json> work(CleanTarget& target, const CleanArguments& arguments, IoLayer& io) {
  const Interruptible interruptible;
  const std::vector<std::string> paths(arguments.places.begin(), arguments.places.end() - 1);
  TRY(target.start(arguments.request, paths));
  Progress progress;
  progress.state = [&] { return target.state(); };
  progress.stop = [&] { return target.stop(); };
  progress.line = clean_progress;
  progress.share = clean_share;
  progress.shows = !arguments.json;
  return wait_for_end(progress, io);
}

Result<std::unique_ptr<CleanTarget>> target_of(const CleanArguments& arguments) {
  const control::Place place = TRY(control::find_place(arguments.places.back()));
  if (place.is_dead) return control::daemon_gone(place);
  if (place.is_mounted()) return mounted_target(place.directory);
  return image_target(place.source, arguments.request.dry_run);
}

Status check(CleanArguments& arguments) {
  if (auto mount = mount_that_holds(arguments.places.back())) arguments.places.push_back(*mount);
  fs::CleanRequest& request = arguments.request;
  if (!request.strategy.empty()) TRY(cleaner::make_strategy(request.strategy));
  if (!request.policy.empty()) TRY(cleaner::VictimRule::make(request.policy));
  if (!request.placement.empty()) TRY(cleaner::make_placement(request.placement, {}));
  if (arguments.free_bytes) request.free_blocks = (arguments.free_bytes + kBlockSize - 1) >> kBlockShift;
  if (arguments.move_bytes) request.move_blocks = (arguments.move_bytes + kBlockSize - 1) >> kBlockShift;
  return {};
}

Status clean(CleanArguments arguments, IoLayer& io) {
  TRY(check(arguments));
  const auto target = TRY(target_of(arguments));
  auto state = work(*target, arguments, io);
  const Status closed = target->close();
  if (!state.ok()) return state.error();
  io.answered = true;
  io.out << (arguments.json ? json_text(*state, 2) + "\n" : clean_text(*state)) << std::flush;
  TRY(closed);
  const std::string end = state->value("state", "");
  if (end == "failed") return Error(Errc::io, fmt::format("{}: {}", arguments.places.back(), state->value("reason", "")));
  if (end == "stopped")
    return Error(Errc::interrupted, fmt::format("{}: stopped before it was done; nothing is lost", arguments.places.back()));
  return {};
}

std::string footer() {
  std::string text = "Strategies:\n";
  for (const auto& [name, help] : cleaner::registry().strategies.names()) text += fmt::format("  {:14} {}\n", name, help);
  return text + "Policies and placements: see varve tune --help.\n";
}

}  // namespace

void declare_clean(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<CleanArguments>();
  CLI::App* command = app.add_subcommand("clean", "Rearrange what is live: free space, close holes, make files contiguous");
  command->add_option("places", arguments->places,
                      "Files or directories to begin with (for defragmenting); where it is mounted, or the image: last, and not needed "
                      "if files of a mount are named")
      ->required();
  command->add_option("-s,--strategy", arguments->request.strategy, "How (as the mount does it)");
  command->add_option("-p,--policy", arguments->request.policy, "Which segments (as the mount chooses them)");
  command->add_option("--placement", arguments->request.placement, "Which blocks share segments (as the mount does it)");
  auto* free = command->add_option("--free", arguments->free_bytes, "Enough when so many bytes more are free for writing, with K, M or G")
                   ->transform(positive_size_value());
  command->add_option("--move", arguments->move_bytes, "Enough when so many bytes have been moved, with K, M or G")
      ->transform(positive_size_value());
  command->add_flag("--all", arguments->all, "All that is worth it (the default)")->excludes(free);
  command->add_flag("-n,--dry-run", arguments->request.dry_run, "Only say what would be done; writes nothing");
  command->add_flag("--json", arguments->json, "For programs");
  command->footer(footer());
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return clean(*arguments, io); }; });
}

}  // namespace varve::tool
