#include "varve/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace varve::tool {

namespace {

// mount.fuse3 calls us as "varve SOURCE DIRECTORY -o …" where no mount.fuse.varve is installed.
bool is_bare_mount(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[0].starts_with('-') || words[1].starts_with('-')) return false;
  const auto commands = app.get_subcommands({});
  return std::ranges::none_of(commands, [&](const CLI::App* command) { return command->get_name() == words[0]; }) &&
         words[0].find('/') != std::string::npos;
}

}  // namespace

int run(int argc, const char* const* argv, IoLayer io) {
  CLI::App app("Mounts Varve filesystems, looks into them, and unmounts them.", "varve");
  app.set_version_flag("-V,--version", std::string("varve ") + VARVE_VERSION);
  app.require_subcommand(1);
  Action chosen;
  for (const auto declare :
       {declare_mount, declare_umount, declare_status, declare_top, declare_map, declare_checkpoint, declare_trim,
        declare_clean, declare_history, declare_scrub, declare_tune, declare_dump, declare_salvage})
    declare(app, chosen);

  std::vector<std::string> words(argv + 1, argv + argc);
  if (is_bare_mount(app, words)) words.insert(words.begin(), "mount");
  std::ranges::reverse(words);  // as the parser wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, io.out, io.err) == 0 ? 0 : 1;
  }
  const Status done = chosen(io);
  if (done.ok()) return 0;
  io.err << "varve: " << done.error().message() << std::endl;
  return 1;
}

}  // namespace varve::tool
