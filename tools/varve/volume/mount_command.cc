#include <unistd.h>

#include <CLI/CLI.hpp>

#include "control/place.h"
#include "daemon/daemon.h"
#include "varve/command.h"
#include "varve/volume/snapshot_mount.h"

namespace varve::tool {

namespace {

struct MountArguments {
  std::string source, directory;
  std::vector<std::string> options;
  bool foreground = false;
  bool take_over = false;
};

std::string options_footer() {
  std::string text = "Options of a mount (-o):\n";
  for (const auto& option : daemon::option_help()) text += fmt::format("  {:<16} {}\n", option.name, option.text);
  return text + "Those of mount(8) as well: sync, async, dirsync, nosuid, nodev, noexec and their opposites.\n";
}

// Of a filesystem that is mounted: its daemon shows the snapshot.
Status mount_beside(const MountArguments& arguments, const control::Place& running, const daemon::MountOptions& options,
                    std::ostream& err) {
  if (arguments.foreground)
    return Error(Errc::invalid, fmt::format("{}: is mounted at {}, and its daemon shows the snapshot: leave out -f", running.source,
                                            running.directory));
  return mount_snapshot(running, options, arguments.directory, err);
}

Status mount(const MountArguments& arguments, IoLayer& io) {
  const std::string source = TRY(control::resolve_tag(arguments.source));
  daemon::DaemonArguments daemon{source, arguments.directory, {}, arguments.foreground, {}};
  daemon.options.allow_other = ::geteuid() == 0;
  for (const std::string& options : arguments.options) TRY(daemon::parse_options(options, daemon.options));
  daemon.options.take_over |= arguments.take_over;
  if (const std::string& snapshot = daemon.options.fs.snapshot; !snapshot.empty()) {
    if (!daemon.options.fs.read_only)  // mount(8) gives rw unasked, but before it
      return Error(Errc::invalid, fmt::format("{}: snapshot={}: a snapshot is shown read-only: leave out rw", source, snapshot));
    if (const auto running = control::find_place(source); running.ok() && running->is_mounted())
      return mount_beside(arguments, *running, daemon.options, io.err);
  }
  return daemon::run_daemon(daemon);
}

}  // namespace

void declare_mount(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<MountArguments>();
  CLI::App* command = app.add_subcommand("mount", "Mount a device or image; returns when it can be used");
  command->add_option("source", arguments->source,
                      "Device, image, nbd://host/export, rbd:pool/image, or a device by LABEL=... or UUID=...")->required();
  command->add_option("directory", arguments->directory, "Where to mount it")->required();
  command->add_option("-o", arguments->options, "Options, separated by commas")->allow_extra_args(false);
  command->add_flag("-f,--foreground", arguments->foreground, "Stay in the foreground");
  command->add_flag("--take-over", arguments->take_over, "Also from a machine that has it mounted, which then writes nothing any more");
  command->footer(options_footer());
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return mount(*arguments, io); }; });
}

}  // namespace varve::tool
