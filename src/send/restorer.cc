#include "send/restorer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/errc.h"
#include "base/invariant.h"
#include "base/utf8.h"
#include "send/host_file.h"

namespace varve::send {

using compare::InodeChange;
using compare::KeptInode;

namespace {

// A file that is not yet what it is to be is told by its sticky bit, which says nothing of files, and which nobody else gives them.
constexpr mode_t kUnfinished = S_ISVTX | 0600;

const char* name_of_type(unsigned type) {
  switch (type) {
    case DT_LNK: return "a symbolic link";
    case DT_FIFO: return "a FIFO";
    case DT_SOCK: return "a socket";
    case DT_CHR:
    case DT_BLK: return "a device";
    default: return "a file";
  }
}

Error in_the_way(const std::string& path) {
  return {Errc::exists, fmt::format("{}: a file has this name, which is needed for a moment: move it away, or remove it", path)};
}

}  // namespace

const std::string& Restorer::meant_by(const std::string& path) const { return path == beside_ ? to_be_ : path; }

Error Restorer::failed(const std::string& action, const std::string& path) const {
  const char* const advice = errno == ETXTBSY ? " (it is a program that runs: end that, and give the same command again)" : "";
  return {errc_from_errno(errno), fmt::format("{}: {}: {}{}", printable(meant_by(path)), action, errno_text(), advice)};
}

void Restorer::note(const char* what, const std::string& path) {
  ++restored_.changes;
  tell_(what, path);
}

Result<std::vector<Restorer::Entry>> Restorer::entries_of(Ino directory) {
  std::vector<Entry> all;
  compare::Question question{compare::Question::Kind::entries, {}, snapshot_, {directory, format::ItemKind::dirent, 0}};
  for (;;) {
    const compare::Answer answer = TRY(ask_(question));
    auto found = TRY(compare::decode_entries(answer.bytes));
    std::ranges::move(found.entries, std::back_inserter(all));
    if (answer.ended) return all;
    if (answer.next <= question.from) return Error(Errc::corrupt, "an answer about names goes back");
    question.from = answer.next;
  }
}

// None where there is no such directory: with -n it has not been made. Nor where something is mounted, which nobody asks about.
// The folder that shows snapshots is no part of the tree.
Result<Restorer::Here> Restorer::here(const std::string& directory) {
  Here found;
  const int fd = open_below(root_.get(), relative(directory), O_RDONLY | O_DIRECTORY);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EXDEV)) return found;
  if (fd < 0) return failed("opening", directory);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd), ::closedir);
  if (!listing) return failed("listing", directory);
  while (const dirent* const one = ::readdir(listing.get())) {  // NOLINT(concurrency-mt-unsafe): of this listing only
    const std::string name = one->d_name;
    if (name != "." && name != ".." && !is_in_snapshots(one->d_ino)) found.emplace(name, Entry{name, Ino{one->d_ino}, one->d_type});
  }
  return found;
}

// Would everything else fail as well, or need what is lacking? Errors of the filesystem as a whole come in many codes.
bool Restorer::ends_all(const Error& why) const {
  constexpr Errc kOfAll[] = {Errc::no_space, Errc::read_only, Errc::interrupted, Errc::stale, Errc::no_memory};
  struct stat status {};
  return std::ranges::any_of(kOfAll, [&](Errc code) { return why.is(code); }) || ::fstat(root_.get(), &status) != 0;
}

Status Restorer::unless_it_ends_all(const std::string& path, const Status& done) {
  if (done.ok() || ends_all(done.error())) return done;
  restored_.failures.push_back({path, done.error().message()});
  return {};
}

Status Restorer::restore(const std::string& path) {
  INVARIANT(path.starts_with('/'));
  struct stat status {};
  if (options_.only_missing && look_at(path, status)) return Error(Errc::exists, printable(path) + ": it is there: move it away first");
  const Entry entry = TRY(walk_to(path));
  if (entry.type == DT_DIR) TRY(find_links(path, entry.ino));
  if (path == "/") return restore_directory(path, kRootIno, false);
  const std::string parent = parent_of(path);
  return restore_named(parent, entry, TRY(here(parent)));
}

// What the snapshot has on the way there, below the root; the last one is what was asked for. Errc::not_found.
Result<std::vector<Restorer::Entry>> Restorer::way_to(const std::string& path) {
  std::vector<Entry> way;
  Entry at{"", kRootIno, DT_DIR};
  for (std::size_t begin = 1; path != "/" && begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto entries = at.type == DT_DIR ? TRY(entries_of(at.ino)) : std::vector<Entry>();
    const auto next = std::ranges::find(entries, path.substr(begin, end - begin), &Entry::name);
    if (next == entries.end()) return Error(Errc::not_found, fmt::format("{}: the snapshot does not have it", path.substr(0, end)));
    at = *next;
    way.push_back(at);
    begin = end + 1;
  }
  return way;
}

Result<bool> Restorer::has(const std::string& path) {
  const auto way = way_to(path);
  if (way.fails_with(Errc::not_found)) return false;
  return way.ok() ? Result<bool>(true) : Result<bool>(way.error());
}

// A directory on the way that has gone comes back, with nothing else that it had. What was not asked for replaces nothing.
Result<Restorer::Entry> Restorer::walk_to(const std::string& path) {
  const std::vector<Entry> way = TRY(way_to(path));
  std::string at = "/";
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    at = below(at, way[i].name);
    TRY(bring_back(at, way[i]));
  }
  return way.empty() ? Entry{"", kRootIno, DT_DIR} : way.back();
}

Status Restorer::bring_back(const std::string& path, const Entry& directory) {
  const Here siblings = TRY(here(parent_of(path)));
  const auto now = siblings.find(directory.name);
  if (now != siblings.end() && now->second.type == DT_DIR) return {};
  if (now != siblings.end())
    return Error(Errc::exists, fmt::format("{}: {} has the place of this directory: move it away first", printable(path),
                                           name_of_type(now->second.type)));
  TRY(enter(path, nullptr));
  return options_.only_says ? Status() : finish(path, TRY(kept_directory(directory.ino)));
}

// Files that may have lost one of their names: their own change says so, or they lie below a directory that has moved.
Result<std::set<Ino>> Restorer::moved_files() {
  std::set<Ino> files;
  std::vector<Ino> directories;
  for (const auto& [ino, change] : changes_) {
    if (change.gained.empty() || !change.was_there()) continue;
    const std::uint32_t mode = change.after ? change.after->mode : TRY(compare::ask_inode(ask_, snapshot_, ino)).attributes.mode;
    if (S_ISDIR(mode)) directories.push_back(ino);
    else files.insert(ino);
  }
  for (std::set<Ino> seen; !directories.empty();) {
    const Ino directory = directories.back();
    directories.pop_back();
    if (!seen.insert(directory).second) continue;
    for (const Entry& entry : TRY(entries_if_known(directory))) {
      if (entry.type == DT_DIR) directories.push_back(entry.ino);
      else files.insert(entry.ino);
    }
  }
  return files;
}

// While only names are looked for. When it is their turn, it is said of them that they cannot be read.
Result<Restorer::Here> Restorer::here_if_known(const std::string& directory) {
  auto found = here(directory);
  return found.ok() || ends_all(found.error()) ? std::move(found) : Here();
}

Result<std::vector<Restorer::Entry>> Restorer::entries_if_known(Ino directory) {
  auto found = entries_of(directory);
  return found.ok() || ends_all(found.error()) ? std::move(found) : std::vector<Entry>();
}

// Of files that have lost one of their names here, one that they still have: the others are to be links to it.
Status Restorer::find_links(const std::string& path, Ino directory) {
  std::set<Ino> wanted = TRY(moved_files());
  std::vector<std::pair<std::string, Ino>> waiting{{path, directory}};
  while (!wanted.empty() && !waiting.empty()) {
    const auto [at, ino] = waiting.back();
    waiting.pop_back();
    const Here now = TRY(here_if_known(at));
    for (const Entry& entry : TRY(entries_if_known(ino))) {
      if (entry.type == DT_DIR) waiting.emplace_back(below(at, entry.name), entry.ino);
      const auto same = now.find(entry.name);
      if (entry.type == DT_DIR || same == now.end() || same->second.ino != entry.ino || wanted.erase(entry.ino) == 0) continue;
      linked_.emplace(entry.ino, below(at, entry.name));
    }
  }
  return {};
}

Status Restorer::restore_named(const std::string& parent, const Entry& entry, const Here& here) {
  const auto found = here.find(entry.name);
  const Entry* const now = found != here.end() ? &found->second : nullptr;
  const std::string path = below(parent, entry.name);
  if (entry.type != DT_DIR) return restore_file(path, entry, now);
  if (now && is_mount_point(path)) return pass_over(path);
  TRY(enter(path, now));
  return restore_directory(path, entry.ino, !now || now->ino != entry.ino);
}

Status Restorer::enter(const std::string& path, const Entry* now) {
  if (now && now->type == DT_DIR) return {};
  if (!options_.only_says) {
    if (now) TRY(remove(path, false));
    const Spot spot = spot_to_change(path);
    const auto make = [&] { return ::mkdirat(spot.directory.get(), spot.name.c_str(), 0700); };
    const int done = unlocking_directory(spot.directory.get(), make);
    if (done != 0) return failed("making the directory", path);
  }
  note(now ? "replaced" : "created", path + "/");
  return {};
}

// Its attributes at the end, since each change in it sets its times.
Status Restorer::restore_directory(const std::string& path, Ino ino, bool is_new) {
  const std::uint64_t before = restored_.changes;
  const Here now = TRY(here(path));
  std::set<std::string> kept;
  for (const Entry& entry : TRY(entries_of(ino))) {
    TRY(unless_it_ends_all(below(path, entry.name), restore_named(path, entry, now)));
    kept.insert(entry.name);
  }
  for (const auto& [name, entry] : now)
    if (options_.removes && !kept.contains(name)) TRY(unless_it_ends_all(below(path, name), remove_new(below(path, name), entry)));
  const auto change = changes_.find(ino);
  const bool itself = change != changes_.end() && TRY(changes_directory(path, ino, change->second));
  const bool differs = is_new || itself || (change != changes_.end() && change->second.entries);
  if (!differs) return {};
  if (!options_.only_says) TRY(finish(path, TRY(kept_directory(ino))));
  if (!is_new && restored_.changes == before && itself) note("metadata", path);
  return {};
}

Status Restorer::restore_file(const std::string& path, const Entry& entry, const Entry* now) {
  const auto change = changes_.find(entry.ino);
  const bool is_same = now && now->ino == entry.ino;
  if (is_same && (change == changes_.end() || !changes_itself(change->second))) return {};
  if (now && is_mount_point(path)) return pass_over(path);
  if (is_same) return change_in_place(path, change->second, entry.ino);
  if (now && now->type == DT_DIR && !options_.removes) {
    restored_.left.push_back(path);
    return {};
  }
  return make_file(path, entry, now);
}

Status Restorer::make_file(const std::string& path, const Entry& entry, const Entry* now) {
  const auto other = linked_.find(entry.ino);
  const bool is_link = other != linked_.end();
  if (is_link && now && is_one_file(other->second, path)) return {};
  if (!is_link && now && now->type == entry.type && TRY(is_there_already(path, entry.ino))) return {};
  if (options_.only_says) {
    if (!is_link && TRY(compare::ask_inode(ask_, snapshot_, entry.ino)).attributes.nlink > 1) linked_.emplace(entry.ino, path);
  } else {
    if (now && now->type == DT_DIR && !TRY(remove(path, true))) return {};
    const bool replaces = now && now->type != DT_DIR;
    TRY(is_link ? link(other->second, path, replaces) : make_beside(path, entry.ino, replaces));
  }
  note(is_link ? "linked" : now ? "replaced" : "created", path);
  return {};
}

// Nobody sees a part of it so, and a crash leaves what was there.
Status Restorer::make_beside(const std::string& path, Ino ino, bool replaces) {
  const KeptInode kept = TRY(compare::ask_inode(ask_, snapshot_, ino));
  const std::string beside = below(parent_of(path), fmt::format(".varve-restore-{}", ino));
  beside_ = beside;
  to_be_ = path;
  TRY(make_at(beside, ino, kept));
  Status done = fill_beside(path, beside, ino, kept, replaces);
  if (!done.ok()) (void)remove(beside, false);  // it may hold the room that is lacking
  TRY(std::move(done));
  if (kept.attributes.flags & kLocks) TRY(finish(path, kept));
  if (kept.attributes.nlink > 1) linked_.emplace(ino, path);
  return {};
}

Status Restorer::fill_beside(const std::string& path, const std::string& beside, Ino ino, const KeptInode& kept, bool replaces) {
  if (S_ISREG(kept.attributes.mode)) TRY(write_runs(beside, ino, kept.attributes.size, TRY(compare::runs_of(ask_, snapshot_, ino))));
  // Flags come last: what is immutable cannot be renamed.
  KeptInode unlocked = kept;
  unlocked.attributes.flags &= ~kLocks;
  TRY(finish(beside, unlocked));
  return give_name(path, beside, replaces);
}

Status Restorer::make_at(const std::string& path, Ino ino, const KeptInode& kept) {
  const Spot spot = spot_to_change(path);
  const int directory = spot.directory.get();
  const mode_t type = kept.attributes.mode & S_IFMT;
  const auto make = [&] {
    if (type == S_IFLNK) return ::symlinkat(kept.target.c_str(), directory, spot.name.c_str());
    return ::mknodat(directory, spot.name.c_str(), type | kUnfinished, kept.attributes.rdev);
  };
  int done = unlocking_directory(directory, make);
  if (done != 0 && errno == EEXIST) {
    if (!TRY(was_left(path, ino, kept))) return in_the_way(path);
    TRY(remove(path, false));
    done = unlocking_directory(directory, make);
  }
  if (done == 0) return {};
  return failed("making it", path);
}

// By a restore that was interrupted: not finished, or just what the snapshot has, so that nothing is lost.
Result<bool> Restorer::was_left(const std::string& path, Ino ino, const KeptInode& kept) {
  struct stat status {};
  if (!look_at(path, status) || status.st_nlink != 1 || ((status.st_mode ^ kept.attributes.mode) & S_IFMT) != 0) return false;
  if (!S_ISLNK(status.st_mode) && (status.st_mode & S_ISVTX)) return true;
  return static_cast<std::uint64_t>(status.st_size) == kept.attributes.size && TRY(has_content(path, ino, kept));
}

// Only looking changes nothing, whatever comes to light.
Spot Restorer::spot_to_change(const std::string& path) const {
  INVARIANT(!options_.only_says);
  return spot_of(root_.get(), path);
}

bool Restorer::look_at(const std::string& path, struct stat& status) const {
  const Spot spot = spot_of(root_.get(), path);
  return ::fstatat(spot.directory.get(), spot.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool Restorer::is_one_file(const std::string& one, const std::string& other) const {
  struct stat first {}, second {};
  return look_at(one, first) && look_at(other, second) && first.st_ino == second.st_ino;
}

Status Restorer::link(const std::string& from, const std::string& path, bool replaces) {
  const Spot source = spot_to_change(from), spot = spot_to_change(path);
  constexpr const char* kName = ".varve-restore-link";
  const std::string beside = below(parent_of(path), kName);
  if (is_one_file(from, beside)) TRY(remove(beside, false));  // by an interruption
  const auto make = [&] {
    return ::linkat(source.directory.get(), source.name.c_str(), spot.directory.get(), kName, 0);
  };
  const Unlocked file(source.directory.get(), source.name);  // what is immutable gets no names
  if (unlocking_directory(spot.directory.get(), make) != 0) return errno == EEXIST ? in_the_way(beside) : failed("linking", path);
  Status done = give_name(path, beside, replaces);
  if (!done.ok()) (void)remove(beside, false);
  return done;
}

Status Restorer::give_name(const std::string& path, const std::string& beside, bool replaces) {
  const Spot spot = spot_to_change(path);
  const std::string from = beside.substr(beside.rfind('/') + 1);
  const int done = unlocking_name(spot.directory.get(), spot.name, [&] {
    return ::renameat2(spot.directory.get(), from.c_str(), spot.directory.get(), spot.name.c_str(), replaces ? 0 : RENAME_NOREPLACE);
  });
  return done == 0 ? Status() : Status(failed("naming", path));
}

}  // namespace varve::send
