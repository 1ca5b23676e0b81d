#include "varve/observe/list_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "control/mount_table.h"
#include "io/holders.h"

namespace varve::tool {

namespace {

// A mount that this namespace shows: its daemon may be in another one, or belong to somebody else, or be gone.
struct Shown {
  io::Holder daemon;
  std::string root = "/";  // what of the filesystem is shown
  bool is_dead = false;
};

// All that show a whole filesystem. Of one that is shown in parts only, by bind mounts, the first.
std::vector<Mount> mounts_to_show() {
  std::vector<Mount> found;
  for (control::MountEntry& entry : control::varve_mounts()) found.push_back(std::move(entry));
  for (Mount& mount : mounts())
    if (mount.is_varve() && std::ranges::find(found, mount.device, &Mount::device) == found.end()) found.push_back(std::move(mount));
  return found;
}

Shown shown_of(const Mount& mount, const std::vector<io::Holder>& daemons) {
  Shown shown;
  const auto is_its = [&](const io::Holder& daemon) { return daemon.device == mount.device && daemon.source == mount.source; };
  if (const auto daemon = std::ranges::find_if(daemons, is_its); daemon != daemons.end()) shown.daemon = *daemon;
  shown.daemon.source = mount.source;
  shown.daemon.directory = mount.directory;
  shown.daemon.is_elsewhere = false;  // it is shown here, wherever its daemon is
  shown.root = mount.root;
  shown.is_dead = control::is_dead(mount.directory);
  return shown;
}

std::vector<Shown> all_mounts() {
  const std::vector<io::Holder> daemons = io::mount_daemons();
  std::vector<Shown> found;
  for (const Mount& mount : mounts_to_show()) found.push_back(shown_of(mount, daemons));
  const auto is_shown = [&](const io::Holder& daemon) {
    return std::ranges::any_of(found, [&](const Shown& shown) { return shown.daemon.pid == daemon.pid; });
  };
  for (const io::Holder& daemon : daemons)
    if (daemon.is_elsewhere && !daemon.directory.empty() && !is_shown(daemon)) found.push_back({daemon});
  return found;
}

std::string line_of(const Shown& shown) {
  const io::Holder& daemon = shown.daemon;
  std::string about = daemon.pid ? fmt::format("process {}", daemon.pid) : "a process of another user or container";
  if (shown.root != "/") about += fmt::format(", only {} of it", printable(shown.root));
  if (shown.is_dead) about = fmt::format("its daemon is gone: `varve umount {}` clears it", printable(daemon.directory));
  if (daemon.is_elsewhere) about += fmt::format(", in another mount namespace: `varve umount --pid {}` ends it", daemon.pid);
  return fmt::format("{} on {} ({})\n", printable(daemon.source), printable(daemon.directory), about);
}

Json json_of(const Shown& shown) {
  Json json{{"source", shown.daemon.source}, {"directory", shown.daemon.directory}};
  if (shown.daemon.pid) json["pid"] = shown.daemon.pid;
  if (shown.root != "/") json["part"] = shown.root;
  json["elsewhere"] = shown.daemon.is_elsewhere;
  json["dead"] = shown.is_dead;
  return json;
}

}  // namespace

Status list_mounts(bool json, IoLayer& io) {
  const std::vector<Shown> mounts = all_mounts();
  Json list = Json::array();
  for (const Shown& shown : mounts) {
    if (json) list.push_back(json_of(shown));
    else io.out << line_of(shown);
  }
  if (json) io.out << json_text(list, 2) << "\n";
  else if (mounts.empty()) io.out << "Nothing is mounted that you may see.\n";
  return {};
}

void declare_list(CLI::App& app, Action& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "All mounts of Varve on this machine, also those in containers");
  command->add_flag("--json", *json, "For programs");
  command->callback([json, &chosen] { chosen = [json](IoLayer& io) { return list_mounts(*json, io); }; });
}

}  // namespace varve::tool
