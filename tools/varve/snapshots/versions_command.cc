// `varve versions`: each state that snapshots have of one file, and where it is read.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <ranges>
#include <string>
#include <tuple>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/past_view.h"
#include "varve/steps.h"

namespace varve::tool {

namespace {

struct VersionsArguments {
  std::string path;
  bool json = false;
};

// Snapshots that follow one another have this alike.
struct Version {
  bool exists = false;
  struct stat status {};
  std::vector<ChosenSnapshot> snapshots;
  bool is_now = false;
  std::string path;  // where it is read
};

Version version_of(const std::string& path, const std::optional<struct stat>& status) {
  Version found;
  found.path = path;
  found.exists = status.has_value();
  if (status) found.status = *status;
  return found;
}

bool is_same(const Version& one, const Version& other) {
  const auto key = [](const struct stat& s) {
    return std::tuple(s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
  };
  return one.exists == other.exists && (!one.exists || key(one.status) == key(other.status));
}

// Oldest first. A file was not there before it was made: that is no version.
Result<std::vector<Version>> versions_in(const PastView& view, Steps& steps, Unseen& unseen) {
  std::vector<Version> found;
  const auto add = [&found](Version next) {
    const bool goes_on = !found.empty() && is_same(found.back(), next);
    if (found.empty() && !next.exists) return;
    if (!goes_on) found.push_back(std::move(next));
    else if (next.is_now) found.back().is_now = true, found.back().path = next.path;
    else found.back().snapshots.push_back(next.snapshots.front());
  };
  std::size_t looked = 0;
  for (const ChosenSnapshot& one : view.snapshots()) {
    TRY(look_on(steps, looked++, view.snapshots().size()));
    const auto status = view.status_in(one);
    if (!status.ok()) {
      unseen.add(one, status.error());
      continue;
    }
    Version version = version_of(view.in(one), *status);
    if (!version.exists && !view.is_there(one)) continue;
    version.snapshots.push_back(one);
    add(std::move(version));
  }
  Version now = version_of(view.place(), TRY(view.status_now()));
  now.is_now = true;
  add(std::move(now));
  return found;
}

std::string text_of(const Version& version) {
  const std::string from = version.snapshots.empty() ? "" : local_time(version.snapshots.front().made);
  const std::string to = version.is_now ? "now" : local_time(version.snapshots.back().made);
  const std::string changed = version.exists ? local_time(version.status.st_mtim.tv_sec) : "-";
  const std::string size = version.exists ? size_text(static_cast<std::uint64_t>(version.status.st_size)) : "-";
  return fmt::format("{:<20} {:>10}  {:<20} {:<20} {:>9}  {}\n", changed, size, from, to, version.snapshots.size(),
                     version.exists ? printable(version.path) : "(not there)");
}

Json json_of(const Version& version) {
  Json json{{"exists", version.exists}, {"now", version.is_now}, {"snapshots", Json::array()}};
  if (version.exists) {
    json["changed"] = version.status.st_mtim.tv_sec;
    json["size"] = version.status.st_size;
    json["path"] = version.path;
  }
  for (const ChosenSnapshot& one : version.snapshots) json["snapshots"].push_back({{"name", one.name}, {"made", one.made}});
  return json;
}

Status versions(const VersionsArguments& arguments, IoLayer& io) {
  const PastView view = TRY(PastView::open(arguments.path));
  Steps steps(io, !arguments.json);
  Unseen unseen;
  const std::vector<Version> found = TRY(versions_in(view, steps, unseen));
  steps.wipe();
  if (found.empty()) TRY(unseen.status(view.place()));
  if (found.empty()) return Error(Errc::not_found, fmt::format("{}: it is not there, and no snapshot has it", printable(view.place())));
  if (arguments.json) {
    Json json{{"path", view.place()}, {"versions", Json::array()}};
    for (const Version& version : found | std::views::reverse) json["versions"].push_back(json_of(version));
    if (unseen.any()) json["unseen"] = unseen.json();
    io.answered = true;
    io.out << json_text(json, 2) << std::endl;
    return unseen.status(view.place());
  }
  io.out << fmt::format("{:<20} {:>10}  {:<20} {:<20} {:>9}  {}\n", "changed", "size", "from", "to", "snapshots", "read it at");
  for (const Version& version : found | std::views::reverse) io.out << text_of(version);
  io.out << std::flush;
  return unseen.status(view.place());
}

}  // namespace

void declare_versions(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<VersionsArguments>();
  CLI::App* command = app.add_subcommand("versions", "Each state that snapshots have of one file, newest first");
  command->add_option("file", arguments->path, "In a mounted filesystem; it may have gone")->required();
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return versions(*arguments, io); }; });
  command->footer("One of them comes back with: varve restore FILE --from SNAPSHOT\n");
}

}  // namespace varve::tool
