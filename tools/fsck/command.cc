#include "fsck/command.h"

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json_text.h"
#include "control/onlooker.h"
#include "control/place.h"
#include "format/image_mark.h"
#include "fsck/acknowledgement.h"
#include "fsck/consequences.h"
#include "fsck/names.h"
#include "fsck/progress.h"
#include "fsck/rendering.h"
#include "io/overlay_device.h"
#include "lease/leased_device.h"
#include "repair/undo.h"
#include "shared/json_error.h"
#include "shared/output.h"
#include "shared/size_value.h"
#include "shared/usage.h"

namespace varve::fsck {

namespace {

struct Arguments {
  std::string path;
  bool change_nothing = false;
  bool yes = false;
  bool preen = false;
  bool force = false;
  bool verify_data = false;
  bool json = false;
  bool search = false;
  std::string undo, undo_apply;
  std::uint64_t memory = 0;
  ProgressChoice progress;
};

void declare(CLI::App& app, Arguments& a) {
  app.set_version_flag("-V,--version", std::string("fsck.varve ") + VARVE_VERSION);
  auto* nothing = app.add_flag("-n,--dry-run", a.change_nothing, "Change nothing, say what a repair would do; the default");
  auto* yes = app.add_flag("-y,--yes", a.yes, "Repair without asking")->excludes(nothing);
  app.add_flag("-p,-a,--preen", a.preen, "Repair only what loses nothing; trust a clean filesystem unless -f is given")
      ->excludes(nothing)
      ->excludes(yes);
  app.add_flag("-f,--force", a.force, "Check even if the filesystem was unmounted cleanly; with --undo-apply: apply it all the same");
  app.add_flag("--data", a.verify_data, "Also read all data and verify its checksums");
  app.add_flag("--search", a.search, "Look for lost superblocks on the whole device, even if something else is there");
  app.add_option("--undo", a.undo, "Keep what a repair overwrites in this file, which must not exist");
  app.add_option("--undo-apply", a.undo_apply, "Bring back what this file of --undo holds, and do nothing else")
      ->excludes(nothing)
      ->excludes(yes);
  app.add_option("--memory", a.memory, "Take no more than this for the check, as 512M; it says how much it takes if that is too little")
      ->transform(size_value());
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

struct Run {
  repair::Outcome outcome;
  std::map<Ino, std::string> names;
  bool in_place = false;
  bool ended_errors = false;  // see acknowledge()
  Status acknowledged;        // an error: it could not be written down that errors are over
};

std::map<Ino, std::string> names_in(io::BlockDevice& device, const repair::Outcome& outcome) {
  std::set<Ino> inodes = concerned_inodes(outcome.actions);
  for (const check::Report* report : {&outcome.before, &outcome.after})
    for (const check::Problem& problem : report->problems.kept())
      if (problem.where.ino && problem.where.ino != format::kOrphanIno) inodes.insert(problem.where.ino);
  return find_names(device, outcome.after.super, inodes);
}

// What is damaged of a snapshot stops no machine from booting: what is in use is whole.
std::uint64_t errors_that_matter(const check::Report& report, bool preen) {
  const auto of_snapshots = report.problems.count(check::Code::snapshot_damaged) + report.problems.count(check::Code::snapshot_lost);
  return report.errors() - (preen ? of_snapshots : 0);
}

// Everything on an overlay: the device is only read.
Result<Run> try_out(io::BlockDevice& device, const World& world, const repair::RepairOptions& options,
                    check::Progress* progress) {
  io::OverlayDevice overlay(device);
  Run run;
  run.outcome = TRY(repair::repair(overlay, world.recover, options, progress));
  run.names = names_in(overlay, run.outcome);
  return run;
}

// Whatever becomes of that, what was found and done is told.
void note(const Result<bool>& acknowledged, Run& run) {
  if (acknowledged.ok()) run.ended_errors = *acknowledged;
  else run.acknowledged = acknowledged.error();
}

Result<Run> repair_on(io::BlockDevice& device, const World& world, const repair::RepairOptions& options, check::Progress* progress) {
  const std::int64_t began = Clock::system().now().seconds;
  Run run;
  run.in_place = true;
  run.outcome = TRY(repair::repair(device, world.recover, options, progress));
  run.names = names_in(device, run.outcome);
  const bool ends = options.verify_data && run.outcome.ended.ok() && ends_errors(run.outcome.after);
  if (ends) note(acknowledge(device, run.outcome.after, began), run);
  return run;
}

Result<Run> repair_in_place(const Arguments& a, const World& world, const repair::RepairOptions& options,
                            check::Progress* progress) {
  const auto device = TRY(lease::LeasedDevice::open(a.path, {}, {"fsck.varve", ""}));
  if (a.undo.empty()) return repair_on(*device, world, options, progress);
  const auto undo = TRY(repair::UndoDevice::create(*device, a.undo));
  auto done = repair_on(*undo, world, options, progress);
  if (const Status finished = undo->finish(); !finished.ok())
    world.err << fmt::format("fsck.varve: {}: its end cannot be written, --undo-apply will need -f: {}\n", a.undo,
                             finished.error().message());
  if (const std::uint64_t blocks = undo->unreadable())
    world.err << fmt::format("fsck.varve: {}: without {} that could not be read before the repair wrote there\n", a.undo,
                             counted(blocks, "block"));
  return done;
}

// What a check has found that had no need to change anything.
Result<bool> acknowledge_in_place(const Arguments& a, const check::Report& report, std::int64_t began) {
  const auto device = TRY(lease::LeasedDevice::open(a.path, {}, {"fsck.varve", ""}));
  return acknowledge(*device, report, began);
}

// Reads only, and takes no lease: another machine may write meanwhile.
Result<Run> look(const Arguments& a, const World& world, const repair::RepairOptions& options, check::Progress* progress) {
  const auto device = TRY(lease::LeasedDevice::open(a.path, {.access = io::Access::read_only}, {"fsck.varve", ""}));
  control::Onlooker onlooker(*device);
  auto run = try_out(*device, world, options, progress);
  if (const std::string warning = warning_of(onlooker, onlooker.watch()); !warning.empty())
    world.err << fmt::format("fsck.varve: warning: {}: {}\n", a.path, warning);
  return run;
}

Result<Run> check_path(const Arguments& a, const World& world) {
  const auto progress = make_progress(a.progress, a.json ? nullptr : &world.out, world.terminal, a.path, world.clock);
  repair::RepairOptions options{.search = a.search, .search_if_blank = a.yes, .verify_data = a.verify_data,
                                .skip_when_clean = a.preen && !a.force, .check_memory = a.memory};
  if (a.yes) return repair_in_place(a, world, options, progress.get());
  const std::int64_t began = Clock::system().now().seconds;
  Run run = TRY(look(a, world, options, progress.get()));
  const bool worked = run.outcome.ended.ok();
  if (worked && a.preen && a.verify_data && ends_errors(run.outcome.before))
    note(acknowledge_in_place(a, run.outcome.before, began), run);
  const bool harmless = worked && run.outcome.actions.is_safe() && errors_that_matter(run.outcome.after, true) == 0;
  if (!a.preen || run.outcome.actions.empty() || !harmless) return run;
  options.only_safe = true;  // the device may answer otherwise than it did in the trial
  return repair_in_place(a, world, options, progress.get());
}

int exit_code(const Run& run, bool preen) {
  const bool changed = run.in_place && !run.outcome.actions.empty();
  const std::uint64_t left = errors_that_matter(run.in_place ? run.outcome.after : run.outcome.before, preen);
  const bool failed = !run.outcome.ended.ok() || !run.acknowledged.ok();
  return (changed ? kCorrected : kClean) | (left > 0 ? kErrorsLeft : kClean) | (failed ? kOperationalError : kClean);
}

// With --json the same for programs, where nothing else is told.
int fail(const World& world, const Error& why, bool json = false) {
  if (json) world.out << json_error(why.message(), kOperationalError);
  world.err << "fsck.varve: " << why.message() << "\n";
  return kOperationalError;
}

int undo(const Arguments& a, const World& world) {
  auto apply = [&]() -> Result<repair::UndoResult> {
    const auto device = TRY(lease::LeasedDevice::open(a.path, {}, {"fsck.varve", ""}));
    return repair::apply_undo(*device, a.undo_apply, a.force);
  };
  const auto done = apply();
  if (!done.ok()) return fail(world, done.error(), a.json);
  if (a.json) {
    world.out << json_text(Json{{"device", a.path}, {"blocks_brought_back", done->blocks}, {"complete", done->complete}}, 2) << "\n";
    return kClean;
  }
  world.out << fmt::format("{}: {} brought back{}\n", a.path, counted(done->blocks, "block"),
                           done->complete ? "" : "; the undo file has no end, what it does not hold stays as it is");
  return kClean;
}

int report(const Arguments& a, const World& world) {
  const auto done = check_path(a, world);
  if (!done.ok()) return fail(world, done.error(), a.json);
  const bool is_verified = a.verify_data && !format::is_image(done->outcome.before.super);
  const Findings findings{a.path, is_verified, a.preen, done->in_place, done->ended_errors, done->outcome, done->names};
  world.out << (a.json ? to_json(findings) : to_text(findings)) << std::flush;
  for (const Status& status : {done->outcome.ended, done->acknowledged})
    if (!status.ok()) (void)fail(world, status.error());
  return exit_code(*done, a.preen);
}

// A descriptor that is closed would become the device's, and what is said about progress its first blocks.
bool is_open(const ProgressChoice& choice) { return choice.descriptor <= 0 || ::fcntl(choice.descriptor, F_GETFD) >= 0; }

}  // namespace

int run(int argc, const char* const* argv, const World& world) {
  CLI::App app("Checks and repairs a Varve filesystem.", "fsck.varve");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(without_progress_option(argc, argv, arguments.progress));
    if (arguments.memory && arguments.memory < (1U << 20))
      throw CLI::ValidationError("--memory", fmt::format("{} bytes: too little for any check: write it as 512M", arguments.memory));
    if (!is_open(arguments.progress))
      throw CLI::ValidationError("-C", fmt::format("descriptor {} is not open", arguments.progress.descriptor));
  } catch (const CLI::ParseError& error) {
    const int status = finish_parsing(app, error, kUsageError, world.out, world.err);
    if (status != kClean && arguments.json) world.out << json_error(error.what(), status);
    return status;
  }
  auto source = control::find_unmounted(arguments.path);
  if (!source.ok()) return fail(world, source.error(), arguments.json);
  arguments.path = std::move(source).value();
  const int code = arguments.undo_apply.empty() ? report(arguments, world) : undo(arguments, world);
  return is_written("fsck.varve", world.out, world.err) ? code : code | kOperationalError;
}

}  // namespace varve::fsck
