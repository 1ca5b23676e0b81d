#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ostream>
#include <thread>

#include "base/json_text.h"
#include "control/mount_table.h"
#include "varve/command.h"
#include "varve/image_reader.h"
#include "varve/mount_client.h"
#include "varve/status_text.h"
#include "varve/superblock_json.h"

namespace varve::tool {

namespace {

struct StatusArguments {
  std::string path;
  bool json = false;
  bool watch = false;
};

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode);  // a dead mount point is one as well
}

Result<nlohmann::ordered_json> image_status(const std::string& path) {
  if (const auto mounted = fuse::find_mount_of(fuse::resolve_mount_point(path)))
    return mount_status(mounted->directory);
  ImageReader image = TRY(ImageReader::open(path));
  return superblock_status(image.super(), path);
}

Status show(const StatusArguments& arguments, IoLayer& io) {
  const auto once = [&] {
    return is_directory(arguments.path) ? mount_status(arguments.path) : image_status(arguments.path);
  };
  for (;;) {
    const auto status = TRY(once());
    if (arguments.json)
      io.out << json_text(status, arguments.watch ? kOneLine : 2) << std::endl;
    else
      io.out << status_text(status) << std::endl;
    if (!arguments.watch || !io.out) return {};
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void declare_status(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app.add_subcommand("status", "What a filesystem knows about itself");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_flag("--json", arguments->json, "For programs");
  command->add_flag("-w,--watch", arguments->watch, "Once a second, until interrupted");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return show(*arguments, io); }; });
}

}  // namespace varve::tool
