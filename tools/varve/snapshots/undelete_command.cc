// `varve undelete`: what a directory has lost, and its return.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/errc.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/past_view.h"
#include "varve/snapshots/restore_command.h"
#include "varve/steps.h"

namespace varve::tool {

namespace files = std::filesystem;

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

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  for (files::directory_iterator at(directory, failure), end; !failure && at != end; at.increment(failure))
    names.push_back(at->path().filename().string());
  if (!failure) return names;
  return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", printable(directory), failure.message()));
}

// Names that a directory has lost.
struct Loss {
  std::vector<Gone> gone;
  Unseen unseen;
  bool was_there = false;  // a snapshot has this directory
};

// Its names in one snapshot that it does not have now, nor in those that `seen` is from.
Status add_gone(const PastView& view, const ChosenSnapshot& one, std::set<std::string>& seen, std::vector<Gone>& found) {
  const std::string then = view.in(one);
  for (const std::string& name : TRY(names_in(then))) {
    Gone gone{name, one, {}};
    if (seen.insert(name).second && ::lstat((then + "/" + name).c_str(), &gone.status) == 0) found.push_back(std::move(gone));
  }
  return {};
}

// None where there is no directory.
Result<std::set<std::string>> names_now(const PastView& view) {
  const auto now = TRY(view.status_now());
  if (!now || !S_ISDIR(now->st_mode)) return std::set<std::string>();
  const auto names = TRY(names_in(view.place()));
  return std::set<std::string>(names.begin(), names.end());
}

// Newest first. A directory that is as it was in the snapshot after it has no other names.
Result<Loss> loss_of(const PastView& view, Steps& steps) {
  using Times = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  Loss loss;
  std::set<std::string> seen = TRY(names_now(view));
  Times last{};
  std::size_t looked = 0;
  for (const ChosenSnapshot& one : view.snapshots() | std::views::reverse) {
    TRY(look_on(steps, looked++, view.snapshots().size()));
    const auto status = view.status_in(one);
    if (!status.ok()) loss.unseen.add(one, status.error());
    if (!status.ok() || !*status || !S_ISDIR((*status)->st_mode)) continue;
    loss.was_there = true;
    const struct stat& then = **status;
    const Times times{then.st_mtim.tv_sec, then.st_mtim.tv_nsec, then.st_ctim.tv_sec, then.st_ctim.tv_nsec};
    if (times == last) continue;
    last = times;
    const Status added = add_gone(view, one, seen, loss.gone);
    if (!added.ok() && view.is_there(one)) loss.unseen.add(one, added.error());
  }
  return loss;
}

// A name that was never there must not sound as if all were well.
Status check_is_known(const PastView& view, const Loss& loss) {
  const auto now = TRY(view.status_now());
  if (loss.was_there || (now && S_ISDIR(now->st_mode))) return {};
  TRY(loss.unseen.status(view.place()));
  if (now) return Error(Errc::not_directory, fmt::format("{}: it is no directory, and no snapshot has one there", printable(view.place())));
  return Error(Errc::not_found, fmt::format("{}: it is not there, and no snapshot has it", printable(view.place())));
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

void print(const Loss& loss, const PastView& view, bool json, IoLayer& io) {
  if (json) {
    Json all{{"directory", view.place()}, {"gone", Json::array()}};
    for (const Gone& one : loss.gone) all["gone"].push_back(json_of(one));
    if (loss.unseen.any()) all["unseen"] = loss.unseen.json();
    io.answered = true;
    io.out << json_text(all, 2) << std::endl;
    return;
  }
  if (!loss.gone.empty()) io.out << fmt::format("{:<20} {:>10}  {:<20} {}\n", "last seen", "size", "changed", "name");
  else if (!loss.unseen.any()) io.out << fmt::format("Nothing has gone from {} that a snapshot has.\n", printable(view.place()));
  for (const Gone& one : loss.gone) io.out << text_of(one);
  io.out << std::flush;
}

Status list_gone(const UndeleteArguments& arguments, IoLayer& io) {
  const PastView view = TRY(PastView::open(arguments.directory, PastView::Kind::directory));
  Steps steps(io, !arguments.json);
  const Loss loss = TRY(loss_of(view, steps));
  steps.wipe();
  TRY(check_is_known(view, loss));
  print(loss, view, arguments.json, io);
  return loss.unseen.status(view.place());
}

// A name that leads out of the directory would bring back what nobody meant.
Status check_is_below(const UndeleteArguments& arguments, const files::path& name) {
  const bool leads_out = name.empty() || name.is_absolute() || std::ranges::find(name, "..") != name.end();
  if (!leads_out) return {};
  return Error(Errc::invalid, fmt::format("{}: a name in {} is meant, or a path below it", printable(name.string()),
                                          printable(arguments.directory)));
}

// `answer`: takes what is told with --json.
Status bring_back(const UndeleteArguments& arguments, const std::string& name, Json& answer, IoLayer& io) {
  TRY(check_is_below(arguments, name));
  const std::string path = (files::path(arguments.directory) / name).string();
  const PastView view = TRY(PastView::open(path));
  for (const ChosenSnapshot& one : view.snapshots() | std::views::reverse) {
    if (!TRY(view.status_in(one))) continue;
    answer["snapshot"] = one.name;
    Json told;
    const Status done = restore({.path = path, .name = one.name, .only_says = arguments.only_says, .json = arguments.json,
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
