#include "fsck/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "fsck/progress.h"
#include "fsck/rendering.h"

namespace varve::fsck {

namespace {

struct Arguments {
  std::string path;
  bool change_nothing = false;
  bool yes = false;
  bool preen = false;
  bool force = false;
  bool json = false;
  bool verify_data = false;
  ProgressChoice progress;
};

void declare(CLI::App& app, Arguments& a) {
  app.set_version_flag("-V,--version", std::string("fsck.varve ") + VARVE_VERSION);
  auto* nothing = app.add_flag("-n", a.change_nothing, "Change nothing");
  auto* yes = app.add_flag("-y", a.yes, "Repair without asking (repairs are not possible yet)")->excludes(nothing);
  app.add_flag("-p,-a", a.preen, "Repair only what is safe; trust a clean filesystem unless -f is given")
      ->excludes(nothing)
      ->excludes(yes);
  app.add_flag("-f", a.force, "Check even if the filesystem was unmounted cleanly");
  app.add_flag("--data", a.verify_data, "Also read all data and verify its checksums");
  app.add_flag("-C", a.progress.wanted, "Show progress, on the descriptor whose number may follow; the default on a terminal");
  app.add_flag("--json", a.json, "Print the findings as JSON");
  app.add_option("target", a.path, "Block device or image file")->required();
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// fsck(8) passes "-C5" or "-C 5", people "-C": an optional value in front of a positional, which only a look ahead tells.
std::vector<std::string> without_progress_option(int argc, const char* const* argv, ProgressChoice& choice) {
  std::vector<std::string> rest;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string_view value = argument.substr(0, 2) == "-C" ? argument.substr(2) : "";
    if (argument != "-C" && !is_number(value)) {
      rest.emplace_back(argument);
      continue;
    }
    choice.wanted = true;
    if (argument == "-C" && i + 1 < argc && is_number(argv[i + 1])) value = argv[++i];
    if (!value.empty()) choice.descriptor = std::stoi(std::string(value.substr(0, 6)));
  }
  std::ranges::reverse(rest);  // as CLI11 wants it
  return rest;
}

struct Outcome {
  check::Report report;
  bool recovered = false;  // in place
};

// The filesystem as the next mount would find it, where that is possible.
Result<Outcome> check_device(const Arguments& a, io::BlockDevice& device, const World& world, check::Progress* progress) {
  const check::CheckOptions options{.verify_data = a.verify_data, .skip_when_clean = a.preen && !a.force};
  Outcome outcome{TRY(check::check(device, options, progress))};
  if (!outcome.report.needs_recovery || !world.recover) return outcome;
  const auto recovered = TRY(world.recover(device));
  outcome.report = TRY(check::check(*recovered, options, progress));
  return outcome;
}

Result<Outcome> check_path(const Arguments& a, const World& world) {
  const bool may_write = (a.yes || a.preen) && !a.change_nothing && world.recover_in_place;
  auto device = TRY(io::open_device(a.path, {.access = io::Access::read_only}));
  const auto progress = make_progress(a.progress, a.json ? nullptr : &world.out, world.terminal, a.path);
  const bool unclean = TRY(check::check(*device, {.skip_when_clean = true}, nullptr)).needs_recovery;
  Outcome outcome = TRY(check_device(a, *device, world, progress.get()));
  // What the log holds goes into the trees only after the result of doing so has been looked at.
  if (!unclean || !may_write || outcome.report.errors() > 0) return outcome;
  device.reset();
  device = TRY(io::open_device(a.path, {}));
  TRY(world.recover_in_place(*device));
  outcome.recovered = true;
  return outcome;
}

}  // namespace

int run(int argc, const char* const* argv, const World& world) {
  CLI::App app("Checks a Varve filesystem.", "fsck.varve");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(without_progress_option(argc, argv, arguments.progress));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, world.out, world.err) == 0 ? kClean : kUsageError;
  }
  const auto outcome = check_path(arguments, world);
  if (!outcome.ok()) {
    world.err << "fsck.varve: " << outcome.error().message() << "\n";
    return kOperationalError;
  }
  const Findings findings{arguments.path, arguments.verify_data, arguments.yes || arguments.preen, outcome->report};
  world.out << (arguments.json ? to_json(findings) : to_text(findings));
  if (outcome->recovered && !arguments.json) world.out << arguments.path << ": the log was replayed\n";
  return outcome->report.errors() > 0 ? kErrorsLeft : outcome->recovered ? kCorrected : kClean;
}

}  // namespace varve::fsck
