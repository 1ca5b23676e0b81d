// `varve undelete`: what a directory has lost, and its return.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/counted.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/past_view.h"
#include "varve/snapshots/restore_command.h"
#include "varve/steps.h"

namespace varve::tool {

namespace {

struct UndeleteArguments {
  std::string directory;
  std::vector<std::string> names;
  bool json = false, only_says = false;
};

// With the newest snapshot that has it.
struct Gone {
  std::string name;
  ChosenSnapshot last;
  struct stat status {};
};

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(directory, failure), end; !failure && at != end; at.increment(failure))
    names.push_back(at->path().filename().string());
  return names;
}

// Newest first. A directory that is as it was in the snapshot after it has no other names.
Result<std::vector<Gone>> gone_from(const PastView& view, Steps& steps) {
  using Times = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<Gone> found;
  const std::vector<std::string> here = names_in(view.place());
  std::set<std::string> seen(here.begin(), here.end());
  Times last{};
  std::size_t looked = 0;
  for (const ChosenSnapshot& one : view.snapshots() | std::views::reverse) {
    TRY(look_on(steps, looked++, view.snapshots().size()));
    const std::string then = view.in(one);
    struct stat status {};
    if (::lstat(then.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    const Times times{status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
    if (times == last) continue;
    last = times;
    for (const std::string& name : names_in(then)) {
      Gone gone{name, one, {}};
      if (seen.insert(name).second && ::lstat((then + "/" + name).c_str(), &gone.status) == 0) found.push_back(std::move(gone));
    }
  }
  return found;
}

std::string text_of(const Gone& gone) {
  const bool is_directory = S_ISDIR(gone.status.st_mode);
  const std::string size = is_directory ? "-" : size_text(static_cast<std::uint64_t>(gone.status.st_size));
  return fmt::format("{:<20} {:>10}  {:<20} {}{}\n", local_time(gone.last.made), size, local_time(gone.status.st_mtim.tv_sec),
                     printable(gone.name), is_directory ? "/" : "");
}

Json json_of(const Gone& gone) {
  return {{"name", gone.name}, {"directory", S_ISDIR(gone.status.st_mode)}, {"size", gone.status.st_size},
          {"changed", gone.status.st_mtim.tv_sec}, {"snapshot", gone.last.name}, {"made", gone.last.made}};
}

Status list_gone(const UndeleteArguments& arguments, IoLayer& io) {
  const PastView view = TRY(PastView::open(arguments.directory));
  Steps steps(io, !arguments.json);
  const std::vector<Gone> gone = TRY(gone_from(view, steps));
  steps.wipe();
  if (arguments.json) {
    Json json{{"directory", view.place()}, {"gone", Json::array()}};
    for (const Gone& one : gone) json["gone"].push_back(json_of(one));
    io.out << json_text(json, 2) << std::endl;
    return {};
  }
  if (gone.empty()) {
    io.out << fmt::format("Nothing has gone from {} that a snapshot has.", printable(view.place())) << std::endl;
    return {};
  }
  io.out << fmt::format("{:<20} {:>10}  {:<20} {}\n", "last seen", "size", "changed", "name");
  for (const Gone& one : gone) io.out << text_of(one);
  io.out << std::flush;
  return {};
}

// `answer`: takes what is told with --json.
Status bring_back(const UndeleteArguments& arguments, const std::string& name, Json& answer, IoLayer& io) {
  const PastView view = TRY(PastView::open((std::filesystem::path(arguments.directory) / name).string()));
  for (const ChosenSnapshot& one : view.snapshots() | std::views::reverse) {
    struct stat status {};
    if (::lstat(view.in(one).c_str(), &status) != 0) continue;
    answer["snapshot"] = one.name;
    Json told;
    const Status done = restore({.path = view.place(), .name = one.name, .only_says = arguments.only_says, .json = arguments.json,
                                 .answer = &told, .only_missing = true}, io);
    if (told.is_object()) answer.update(told);
    return done;
  }
  return Error(Errc::not_found, fmt::format("{}: no snapshot has it", printable(view.place())));
}

// All that are named, even if some fail: the first failure.
Status undelete(const UndeleteArguments& arguments, IoLayer& io) {
  if (arguments.names.empty()) return list_gone(arguments, io);
  std::string wrong;
  Errc code = Errc::not_found;
  Json answers = Json::array();
  for (const std::string& name : arguments.names) {
    Json answer{{"name", name}};
    if (const Status done = bring_back(arguments, name, answer, io); !done.ok()) {
      code = done.error().code();
      wrong += (wrong.empty() ? "" : "\n") + done.error().message();
      answer["error"] = done.error().message();
    }
    answers.push_back(std::move(answer));
  }
  if (arguments.json) {
    io.answered = true;
    io.out << json_text(Json{{"undeleted", answers}}, 2) << std::endl;
  }
  return wrong.empty() ? Status() : Status(Error(code, wrong));
}

}  // namespace

void declare_undelete(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<UndeleteArguments>();
  CLI::App* command = app.add_subcommand("undelete", "What has gone from a directory, newest first; with names: bring it back");
  command->add_option("directory", arguments->directory, "In a mounted filesystem; it may have gone")->required();
  command->add_option("names", arguments->names, "Those to bring back; without: only list them");
  command->add_flag("-n,--dry-run", arguments->only_says, "Only say what would be done");
  command->add_flag("--json", arguments->json, "For programs: the list, or what has come back");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return undelete(*arguments, io); }; });
}

}  // namespace varve::tool
