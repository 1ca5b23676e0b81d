#include <CLI/CLI.hpp>
#include <chrono>
#include <ostream>
#include <thread>

#include "base/json_text.h"
#include "control/onlooker.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/observe/list_command.h"
#include "varve/observe/place_facts.h"
#include "varve/observe/status_text.h"
#include "varve/observe/superblock_json.h"
#include "varve/volume/image_reader.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct StatusArguments {
  std::string path;
  bool json = false;
  bool watch = false;
  bool brief = false;
  bool all = false;
};

Result<Json> status_of(const control::Place& place) {
  if (place.is_mounted() && !place.is_dead) return mount_status(place.directory);
  auto image = ImageReader::open(place.source);
  if (!image.ok()) return place.is_dead ? control::daemon_gone(place) : image.error();
  auto status = superblock_status(image->super(), place.source);
  control::Onlooker onlooker(image->device());
  add_presence(status, onlooker.watch(), onlooker.holder());
  return status;
}

Status show(const StatusArguments& arguments, IoLayer& io) {
  if (arguments.all) return list_mounts(arguments.json, io);
  if (arguments.path.empty()) return Error(Errc::invalid, "status: path is missing: where it is mounted, or a device or image; or --all");
  for (;;) {
    const control::Place place = TRY(control::find_place(arguments.path));
    auto status = TRY(status_of(place));
    add_place_facts(status, place);
    if (arguments.json)
      io.out << json_text(status, arguments.watch ? kOneLine : 2) << std::endl;
    else
      io.out << status_summary(status) << (arguments.brief ? "" : "\n" + status_text(status)) << std::flush;
    if (!arguments.watch || !io.out) return {};
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void declare_status(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app.add_subcommand("status", "What a filesystem knows about itself");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image");
  command->add_flag("--all", arguments->all, "All mounts of this machine, as varve list has them");
  command->add_flag("--json", arguments->json, "For programs");
  command->add_flag("-s,--short", arguments->brief, "Only the first lines: size, state, cleaner, log");
  command->add_flag("-w,--watch", arguments->watch, "Once a second, until interrupted");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return show(*arguments, io); }; });
}

}  // namespace varve::tool
