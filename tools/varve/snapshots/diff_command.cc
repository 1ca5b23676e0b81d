// `varve diff` and `varve snapshot diff`: what has changed between two snapshots, or since one.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "compare/change_list.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/diff_command.h"
#include "varve/snapshots/snapshot_source.h"

namespace varve::tool {

namespace {

using compare::Change;

struct DiffArguments {
  std::string path, before, after;
  bool json = false;
};

const char* type_of(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFLNK: return "symlink";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFCHR:
    case S_IFBLK: return "device";
    default: return "unknown";
  }
}

// JSON has no bytes that are no text: those of such a path stand beside it.
void put_path(Json& json, const std::string& name, const std::string& path) {
  json[name] = path;
  const bool is_text = Json::parse(json_text(path)) == path;
  const std::span bytes(reinterpret_cast<const unsigned char*>(path.data()), path.size());
  if (!is_text) json[name + "_hex"] = fmt::format("{:02x}", fmt::join(bytes, ""));
}

Json json_of(const Change& change) {
  Json json{{"change", name_of(change.kind)}};
  put_path(json, "path", change.path);
  if (!change.former.empty()) put_path(json, "from", change.former);
  json["inode"] = change.ino.v;
  if (change.mode) json["type"] = type_of(change.mode);
  if (!change.what.empty()) json["what"] = change.what;
  return json;
}

// A directory is told by the slash behind it.
std::string shown(const Change& change, const std::string& path) {
  return printable(path) + (S_ISDIR(change.mode) && path != "/" ? "/" : "");
}

std::string line_of(const Change& change) {
  std::string line = fmt::format("{:<9} ", name_of(change.kind));
  line += change.former.empty() ? shown(change, change.path) : shown(change, change.former) + " -> " + shown(change, change.path);
  std::string what;
  for (const std::string& one : change.what)
    if (change.kind != Change::Kind::modified || one != "content") what += (what.empty() ? "" : ", ") + one;
  return line + (what.empty() ? "" : fmt::format("  ({})", what)) + "\n";
}

// Its arguments are the names of snapshots afterwards.
Result<std::vector<Change>> changes_in(SnapshotSource& source, DiffArguments& arguments, std::ostream& err) {
  for (std::string* const which : {&arguments.before, &arguments.after})
    if (!which->empty()) *which = TRY(name_of_snapshot(source, arguments.path, *which, err));
  const Serial before = TRY(source.serial_of(arguments.before));
  TRY(hold_if_it_fits(source, before, err));
  const Serial after = arguments.after.empty() ? TRY(now_or_newest(source, err)) : TRY(source.serial_of(arguments.after));
  if (!arguments.after.empty()) TRY(hold_if_it_fits(source, after, err));
  ProgressMeter meter(err, true);
  std::uint64_t read = 0;
  const compare::Ask ask = [&](const compare::Question& question) -> Result<compare::Answer> {
    if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: nothing was changed, and nothing is left of it");
    auto answer = source.ask()(question);
    if (answer.ok()) read += answer->bytes.size();
    meter.show([&] { return fmt::format("comparing: {} of changes and names read", size_text(read)); });
    return answer;
  };
  return compare::list_changes(ask, TRY(compare::Difference::find(ask, before, after)), before, after);
}

void print(const std::vector<Change>& changes, const DiffArguments& arguments, IoLayer& io) {
  if (!arguments.json) {
    for (const Change& change : changes) io.out << line_of(change);
    io.out << std::flush;
    return;
  }
  Json json{{"before", arguments.before}, {"after", nullptr}, {"changes", Json::array()}};
  if (!arguments.after.empty()) json["after"] = arguments.after;
  for (const Change& change : changes) json["changes"].push_back(json_of(change));
  io.out << json_text(json, 2) << std::endl;
}

Status diff(DiffArguments arguments, IoLayer& io) {
  const Interruptible interruptible;  // a snapshot of this moment must go again
  const auto source = TRY(SnapshotSource::open(arguments.path, arguments.after.empty()));
  const auto changes = changes_in(*source, arguments, io.err);
  const Status closed = source->close();
  if (!changes.ok()) return changes.error();
  print(*changes, arguments, io);
  return closed;
}

}  // namespace

void add_diff(CLI::App& parent, Action& chosen) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command = parent.add_subcommand("diff", "What has changed between two snapshots, or since one");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option("before", arguments->before, "The older snapshot: its name, how long ago (10m), or a time (14:30)")->required();
  command->add_option("after", arguments->after, "The newer one; without: as it is now");
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return diff(*arguments, io); }; });
}

void declare_diff(CLI::App& app, Action& chosen) { add_diff(app, chosen); }

}  // namespace varve::tool
