// `varve restore` and `varve snapshot restore`: a file or a tree as a snapshot has it.
#include "varve/restore_command.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <string>

#include "base/errc.h"
#include "compare/difference.h"
#include "control/place.h"
#include "send/restorer.h"
#include "shared/counted.h"
#include "varve/dump.h"
#include "varve/interruptible.h"
#include "varve/kept_damage.h"
#include "varve/mount_client.h"
#include "varve/snapshot_source.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

namespace files = std::filesystem;

struct RestoreArguments {
  std::string path, name;
  bool removes = false, only_says = false;
};

// Where it is, or was: directories above may have gone, and the last name may be one of a symbolic link.
Result<std::string> place_of(const std::string& path) {
  std::error_code failure;
  files::path wanted = files::absolute(path, failure).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  const files::path parent = files::weakly_canonical(wanted.parent_path(), failure);
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", path, failure.message()));
  return (parent / wanted.filename()).string();
}

Result<std::string> mount_of(const std::string& place) {
  for (files::path at = place;; at = at.parent_path()) {
    std::error_code failure;
    if (!files::is_directory(files::symlink_status(at, failure))) {
      if (at == at.parent_path()) return Error(Errc::not_found, fmt::format("{}: there is no such directory", place));
      continue;
    }
    return control::find_mounted(at.string());
  }
}

// From what is there at this moment. The snapshot of it goes when it is known: it would hold each block that is written over.
Result<compare::Difference> difference_to(SnapshotSource& source, const compare::Ask& ask, Serial snapshot, std::ostream& err) {
  return compare::Difference::find(ask, TRY(now_or_newest(source, err)), snapshot);
}

// The file that did not fit has been removed, but its room counts as used until the next checkpoint. `staying`: the source, if it is held.
Error does_not_fit(const std::string& mount, const Error& why, const std::string& staying) {
  if (auto client = MountClient::open(mount); client.ok()) (void)client->checkpoint();
  std::string said = fmt::format("{}\n  What is listed before that is done. Remove files, or a snapshot that holds much (varve snapshot "
                                 "list {}), and give the same command again: it goes on from here.", why.message(), mount);
  if (!staying.empty()) said += fmt::format("\n  The automatic snapshot '{}' stays for an hour for that.", staying);
  return {why.code(), said};
}

// The same without links inside the filesystem: where one stands now, the snapshot may have had a directory. Empty: no other path.
std::string path_without_links(const std::string& path, const std::string& mount) {
  std::error_code failure;
  const files::path wanted = files::absolute(path, failure).lexically_normal();
  files::path above;
  for (auto part = wanted.begin(); part != wanted.end(); ++part) {
    above /= *part;
    const std::string here = files::canonical(above, failure).string();
    if (failure || (here != mount && !here.starts_with(mount == "/" ? mount : mount + "/"))) continue;
    files::path rest = here.substr(mount == "/" ? 0 : mount.size()) + "/";
    while (++part != wanted.end()) rest /= *part;
    std::string found = rest.lexically_normal().string();
    while (found.size() > 1 && found.back() == '/') found.pop_back();
    return found;
  }
  return "";
}

// Which of both the snapshot has; of none it is said of the path that was given.
Result<std::string> path_then(send::Restorer& restorer, const std::string& direct, const std::string& followed) {
  if (direct.empty() || direct == followed || TRY(restorer.has(direct))) return direct.empty() ? followed : direct;
  const bool is_behind_links = TRY(restorer.has(followed));
  return is_behind_links ? followed : direct;
}

// What was left alone, and why.
Status all_done(const send::Restored& restored) {
  std::string left;
  if (!restored.left.empty())
    left = fmt::format("{}: a directory has the place of a file: --delete removes it, with all that is in it", restored.left.front());
  if (!restored.mounts.empty()) left += std::string(left.empty() ? "" : "\n") + "not restored, since something else is mounted there:";
  for (const std::string& path : restored.mounts) left += "\n  " + ascii_text(path);
  return left.empty() ? Status() : Status(Error(Errc::busy, left));
}

Status restore(const RestoreArguments& arguments, IoLayer& io) {
  const Interruptible interruptible;  // a snapshot of this moment must go again
  const std::string place = TRY(place_of(arguments.path)), mount = TRY(mount_of(place));
  std::string path = place.substr(mount == "/" ? 0 : mount.size());
  if (path.empty()) path = "/";
  const auto source = TRY(SnapshotSource::open(mount, true));
  const Serial snapshot = TRY(source->serial_of(arguments.name));
  TRY(source->hold(snapshot));
  const compare::Ask asking = [&source](const compare::Question& question) -> Result<compare::Answer> {
    if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: the same command completes what has begun");
    return source->ask()(question);
  };
  const compare::Ask ask = telling_of_damage(asking, mount, arguments.name);
  const auto difference = difference_to(*source, ask, snapshot, io.err);
  const Status forgotten = source->forget_now();
  if (!difference.ok()) return difference.error();
  TRY(forgotten);
  Descriptor root(::open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", mount, errno_text()));
  const auto tell = [&io](const char* what, const std::string& where) { io.out << fmt::format("{:<9} {}\n", what, ascii_text(where)); };
  send::Restorer restorer(ask, *difference, snapshot, std::move(root), {arguments.removes, arguments.only_says}, tell);
  path = TRY(path_then(restorer, path_without_links(arguments.path, mount), path));
  const auto restored = restorer.restore(path);
  io.out << std::flush;
  const bool stays = restored.fails_with(Errc::no_space) && source->hold_on();
  const Status closed = source->close();
  if (restored.fails_with(Errc::no_space)) return does_not_fit(mount, restored.error(), stays ? arguments.name : "");
  if (!restored.ok()) return restored.error();
  io.out << (arguments.only_says ? fmt::format("{} to make\n", counted(restored->changes, "change"))
                                 : fmt::format("{}, {} written\n", counted(restored->changes, "change"), size_text(restored->data_bytes)))
         << std::flush;
  TRY(all_done(*restored));
  return closed;
}

}  // namespace

void add_restore(CLI::App& parent, Action& chosen) {
  auto arguments = std::make_shared<RestoreArguments>();
  CLI::App* command = parent.add_subcommand("restore", "Bring back a file or a tree as a snapshot has it");
  command->add_option("path", arguments->path, "In a mounted filesystem; it may have gone")->required();
  command->add_option("--from", arguments->name, "Name of the snapshot")->required();
  command->add_flag("--delete", arguments->removes, "Remove what is new since, in a tree");
  command->add_flag("-n,--dry-run", arguments->only_says, "Only say what would be done");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return restore(*arguments, io); }; });
}

void declare_restore(CLI::App& app, Action& chosen) { add_restore(app, chosen); }

}  // namespace varve::tool
