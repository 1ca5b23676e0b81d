#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>

#include "base/buffer.h"
#include "base/json_text.h"
#include "cleaner/registry.h"
#include "control/mount_table.h"
#include "control/request_json.h"
#include "format/superblock.h"
#include "shared/interruptible.h"
#include "shared/size_value.h"
#include "varve/care/clean_text.h"
#include "varve/command.h"
#include "varve/progress.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct CleanArguments {
  jobs::CleanRequest request;
  std::uint64_t free_bytes = 0, move_bytes = 0;
  bool all = false, json = false;
  std::vector<std::string> places;  // paths, then the mount or image
};

Status start(Volume& volume, CleanArguments& arguments) {
  for (auto path = arguments.places.begin(); path + 1 != arguments.places.end(); ++path)
    arguments.request.roots.push_back(TRY(volume.find(*path)));
  return volume.tell("clean_start", control::to_json(arguments.request));
}

Result<Json> work(Volume& volume, CleanArguments& arguments, IoLayer& io) {
  const Interruptible interruptible;
  TRY(start(volume, arguments));
  return wait_for_end(volume, {"clean", clean_progress, clean_share, !arguments.json}, io);
}

bool is_image(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  file.read(reinterpret_cast<char*>(block.data()), kBlockSize);
  return file.good() && !format::decode_superblock(block.span()).fails_with(Errc::not_varve);  // it may be torn
}

// The place where the filesystem is mounted that holds this file or directory. A mount point itself has none. Neither has a path that is
// not on Varve, or an image that lies on one.
std::optional<std::string> mount_that_holds(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  if (error || is_image(whole)) return std::nullopt;
  for (std::filesystem::path at = whole;; at = at.parent_path()) {
    if (const auto mount = control::find_mount(at)) return mount->is_varve() && at != whole ? std::optional<std::string>(at) : std::nullopt;
    if (at == at.root_path()) return std::nullopt;
  }
}

Status check(CleanArguments& arguments) {
  if (auto mount = mount_that_holds(arguments.places.back())) arguments.places.push_back(*mount);
  jobs::CleanRequest& request = arguments.request;
  if (!request.strategy.empty()) TRY(cleaner::make_strategy(request.strategy));
  if (!request.policy.empty()) TRY(cleaner::VictimRule::make(request.policy));
  if (!request.placement.empty()) TRY(cleaner::make_placement(request.placement, {}));
  if (arguments.free_bytes) request.free_blocks = (arguments.free_bytes + kBlockSize - 1) >> kBlockShift;
  if (arguments.move_bytes) request.move_blocks = (arguments.move_bytes + kBlockSize - 1) >> kBlockShift;
  return {};
}

Status clean(CleanArguments arguments, IoLayer& io) {
  TRY(check(arguments));
  // A dry run writes nothing at all, not even a recovery.
  const Volume::Use use = arguments.request.dry_run ? Volume::Use::looks : Volume::Use::changes;
  Volume volume = TRY(Volume::open(arguments.places.back(), "varve clean", use));
  auto state = work(volume, arguments, io);
  const Status closed = volume.close();
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
