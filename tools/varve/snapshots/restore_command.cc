// `varve restore` and `varve snapshot restore`: a file or a tree as a snapshot has it.
#include "varve/snapshots/restore_command.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <ostream>
#include <string>

#include "base/counted.h"
#include "base/errc.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "compare/difference.h"
#include "send/restorer.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/kept_damage.h"
#include "varve/snapshots/named_path.h"
#include "varve/snapshots/snapshot_source.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

// From what is there at this moment. The snapshot of it goes when it is known: it would hold each block that is written over.
Result<compare::Difference> difference_to(SnapshotSource& source, const compare::Ask& ask, Serial snapshot, std::ostream& err) {
  return compare::Difference::find(ask, TRY(now_or_newest(source, err)), snapshot);
}

// The file that did not fit has been removed, but its room counts as used until the next checkpoint. `staying`: the source, if it is held.
Error does_not_fit(const std::string& mount, const Error& why, const std::string& staying) {
  if (auto client = Volume::of_mount(mount); client.ok()) (void)client->checkpoint();
  std::string said = fmt::format("{}\n  What is listed before that is done. Remove files, or a snapshot that holds much (varve snapshot "
                                 "list {}), and give the same command again: it goes on from here.", why.message(), mount);
  if (!staying.empty()) said += fmt::format("\n  The automatic snapshot '{}' stays for an hour for that.", staying);
  return {why.code(), said};
}

// Which of both the snapshot has; of none it is said of the path that was given.
Result<std::string> path_then(send::Restorer& restorer, const std::string& direct, const std::string& followed) {
  if (direct == followed || TRY(restorer.has(direct))) return direct;
  const bool is_behind_links = TRY(restorer.has(followed));
  return is_behind_links ? followed : direct;
}

std::string left_text(const std::string& path) {
  return fmt::format("{}: a directory has the place of a file: --delete removes it, with all that is in it", printable(path));
}

// Says what was left alone, and why. Empty: nothing.
std::string left_alone(const send::Restored& restored) {
  std::string left;
  for (const std::string& path : restored.left) left += left_text(path) + "\n";
  for (const send::NotRestored& one : restored.failures) left += one.why + "\n";
  if (!restored.mounts.empty()) left += "not restored, since something else is mounted there:\n";
  for (const std::string& path : restored.mounts) left += "  " + printable(path) + "\n";
  return left;
}

// The same for programs.
Json json_of(const send::Restored& restored) {
  Json all = Json::array();
  for (const std::string& path : restored.left) all.push_back({{"path", path}, {"error", left_text(path)}});
  for (const send::NotRestored& one : restored.failures) all.push_back({{"path", one.path}, {"error", one.why}});
  for (const std::string& path : restored.mounts) all.push_back({{"path", path}, {"error", "something else is mounted there"}});
  return all;
}

Status all_done(const send::Restored& restored) {
  const std::size_t count = restored.left.size() + restored.failures.size() + restored.mounts.size();
  if (count == 0) return {};
  const std::string counts = fmt::format("{} not restored; all else is as the snapshot has it", counted(count, "place"));
  return Error(Errc::busy, left_alone(restored) + counts);
}

// `staying`: the source, if it is held for another attempt.
Status outcome_of(const Status& done, const send::Restored& restored, const std::string& mount, const std::string& staying) {
  if (done.ok()) return all_done(restored);
  const Error why = done.fails_with(Errc::no_space) ? does_not_fit(mount, done.error(), staying) : done.error();
  return Error(why.code(), left_alone(restored) + why.message());
}

void answer(const RestoreArguments& arguments, Json json, IoLayer& io) {
  if (arguments.answer) {
    *arguments.answer = std::move(json);
    return;
  }
  io.answered = true;
  io.out << json_text(json, 2) << std::endl;
}

std::string text_of(const send::Restored& restored, bool only_says) {
  const std::string changes = counted(restored.changes, "change");
  return only_says ? fmt::format("{} to make\n", changes) : fmt::format("{}, {} written\n", changes, size_text(restored.data_bytes));
}

// How far it has come.
struct Advance {
  std::uint64_t changes = 0, all = 0;  // all: about; 0: not known
  std::uint64_t read = 0;              // bytes of the snapshot

  std::string text() const {
    const std::string of = all ? fmt::format(" of about {}", all) : "";
    return fmt::format("{}{}, {} of the snapshot read", counted(changes, "change"), of, size_text(read));
  }
  double share() const { return ProgressMeter::share_of(changes, all); }
  Error interrupted() const {
    return {Errc::interrupted, fmt::format("interrupted after {}: the same command goes on from there", counted(changes, "change"))};
  }
};

}  // namespace

Status restore(RestoreArguments arguments, IoLayer& io) {
  const Interruptible interruptible;  // a snapshot of this moment must go again
  const NamedPath named = TRY(named_path(arguments.path));
  const std::string mount = TRY(named.whole());
  const auto source = TRY(SnapshotSource::open(mount, true));
  arguments.name = TRY(name_of_snapshot(*source, mount, arguments.name, io.err));
  const Serial snapshot = TRY(source->serial_of(arguments.name));
  TRY(source->hold(snapshot));
  ProgressMeter meter(io.err, !arguments.json);
  Advance advance;
  Json told = Json::array();
  const compare::Ask asking = [&](const compare::Question& question) -> Result<compare::Answer> {
    if (Interruptible::asked()) return advance.interrupted();
    auto answer = source->ask()(question);
    if (answer.ok()) advance.read += answer->bytes.size();
    meter.show([&] { return advance.text(); }, advance.share());
    return answer;
  };
  const compare::Ask ask = telling_of_damage(asking, mount, arguments.name);
  const auto difference = difference_to(*source, ask, snapshot, io.err);
  const Status forgotten = source->forget_now();
  if (!difference.ok()) return difference.error();
  TRY(forgotten);
  Descriptor root(::open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", mount, errno_text()));
  const auto tell = [&](const char* what, const std::string& where) {
    ++advance.changes;
    meter.wipe();
    if (arguments.json) told.push_back({{"change", what}, {"path", where}});
    else io.out << fmt::format("{:<9} {}\n", what, printable(where));
  };
  send::Restorer restorer(ask, *difference, snapshot, std::move(root),
                          {arguments.removes, arguments.only_says, arguments.only_missing}, tell);
  if (named.at.path == "/") advance.all = difference->inodes().size();
  const std::string path = TRY(path_then(restorer, named.direct, named.at.path));
  const Status done = restorer.restore(path);
  const send::Restored& restored = restorer.restored();
  meter.wipe();
  io.out << std::flush;
  const bool stays = done.fails_with(Errc::no_space) && source->hold_on();
  const Status closed = source->close();
  Status outcome = outcome_of(done, restored, mount, stays ? arguments.name : "");
  Json json{{"changes", told}, {"data_bytes", restored.data_bytes}, {"not_restored", json_of(restored)}};
  if (!done.ok()) json["not_restored"].push_back({{"path", path}, {"error", done.error().message()}});
  if (!outcome.ok()) json["error"] = outcome.error().message();
  if (arguments.json) answer(arguments, std::move(json), io);
  else if (done.ok()) io.out << text_of(restored, arguments.only_says) << std::flush;
  return outcome.ok() ? closed : outcome;
}

void add_restore(CLI::App& parent, Action& chosen) {
  auto arguments = std::make_shared<RestoreArguments>();
  CLI::App* command = parent.add_subcommand("restore", "Bring back a file or a tree as a snapshot has it");
  command->add_option("path", arguments->path, "In a mounted filesystem; it may have gone")->required();
  command->add_option("--from", arguments->name, "The snapshot: its name, how long ago (10m), or a time (14:30)")->required();
  command->add_flag("--delete", arguments->removes, "Remove what is new since, in a tree");
  command->add_flag("-n,--dry-run", arguments->only_says, "Only say what would be done");
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return restore(*arguments, io); }; });
}

void declare_restore(CLI::App& app, Action& chosen) { add_restore(app, chosen); }

}  // namespace varve::tool
