#include "varve/snapshots/copy_changes.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "compare/difference.h"
#include "compare/kept_inode.h"
#include "compare/paths.h"
#include "send/mark.h"

namespace varve::tool {

namespace {

using compare::Change;
using compare::InodeChange;

// Of the directory that receives: other extended attributes than the mark.
Result<bool> xattrs_differ(const compare::Ask& ask, Serial before, Serial now, Ino ino) {
  const auto without_mark = [&](Serial serial) -> Result<std::vector<format::Xattr>> {
    std::vector<format::Xattr> all = TRY(compare::ask_inode(ask, serial, ino)).xattrs;
    std::erase_if(all, [](const format::Xattr& one) { return one.name == send::kReceivedAttribute; });
    return all;
  };
  const auto was = TRY(without_mark(before)), is = TRY(without_mark(now));
  return was != is;
}

bool is_same_but_its_names(const compare::InodeChange& change) {
  if (!change.before || !change.after) return !change.attributes_differ;
  format::Attributes was = *change.before;
  was.ctime = change.after->ctime;
  was.atime = change.after->atime;
  was.nlink = change.after->nlink;  // names are changes of their own
  return was == *change.after;
}

Result<bool> holds_the_same(const compare::Ask& ask, Serial before, Serial now, Ino ino, const compare::BlockRun& run) {
  if (run.was != compare::BlockState::data || run.is != compare::BlockState::data) return false;
  for (std::uint64_t at = run.first << kBlockShift, end = (run.first + run.length) << kBlockShift; at < end;) {
    const format::Bytes was = TRY(compare::ask_data(ask, before, ino, at)), is = TRY(compare::ask_data(ask, now, ino, at));
    const std::size_t both = std::min(was.size(), is.size());
    if (both == 0) return was.size() == is.size();
    if (!std::ranges::equal(std::span(was).first(both), std::span(is).first(both))) return false;
    at += both;
  }
  return true;
}

// What was changed and then brought back, as `varve restore` does it, is what was received.
Result<bool> was_brought_back(const compare::Ask& ask, const compare::Change& change, const compare::InodeChange& inode, Serial before,
                              Serial now) {
  using Kind = compare::Change::Kind;
  if ((change.kind != Kind::modified && change.kind != Kind::metadata) || inode.xattrs || !is_same_but_its_names(inode)) return false;
  for (const compare::BlockRun& run : inode.runs)
    if (!TRY(holds_the_same(ask, before, now, change.ino, run))) return false;
  return true;
}

bool is_below(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory == "/" ? directory : directory + "/");
}

// The copy, at the moment of its snapshot and now.
class KeptCopy {
 public:
  KeptCopy(const compare::Ask& ask, const compare::Difference& difference, Serial before, Serial now, std::string here, Ino ino)
      : ask_(ask), difference_(difference), before_(before), now_(now), here_(std::move(here)), ino_(ino) {}

  Result<std::optional<Change>> first_change() {
    TRY(find_former_path());
    std::map<Ino, Change> outside;  // of files that may have a name in the copy, too
    for (Change& change : TRY(compare::list_changes(ask_, difference_, before_, now_))) {
      if (concerns(change) && TRY(counts(change))) return std::optional(std::move(change));
      if (!concerns(change) && may_be_inside(change)) outside.emplace(change.ino, std::move(change));
    }
    return first_inside(outside);
  }

 private:
  // A directory above may have been given another name since. Paths of what has gone are those of then.
  Status find_former_path() {
    former_ = here_;
    const auto own = difference_.inodes().find(ino_);
    if (own == difference_.inodes().end() || own->second.was_there()) former_ = TRY(compare::Paths(ask_, before_).of_directory(ino_));
    return {};
  }

  bool concerns(const Change& change) const {
    const bool is_gone = change.kind == Change::Kind::removed || change.kind == Change::Kind::unlinked;
    return is_below(change.path, is_gone ? former_ : here_) || is_below(change.former, former_);
  }

  // A change of a file is told by one of its names.
  bool may_be_inside(const Change& change) const {
    if ((change.kind != Change::Kind::modified && change.kind != Change::Kind::metadata) || S_ISDIR(change.mode)) return false;
    const auto inode = difference_.inodes().find(change.ino);
    return inode == difference_.inodes().end() || !inode->second.after || inode->second.after->nlink > 1;
  }

  // The mark does not count, nor does what was brought back.
  Result<bool> counts(const Change& change) const {
    const std::vector<std::string> only_xattrs{"xattrs"};
    const bool may_be_mark = change.path == here_ && change.kind == Change::Kind::metadata && change.what == only_xattrs;
    if (may_be_mark && !TRY(xattrs_differ(ask_, before_, now_, change.ino))) return false;
    const auto inode = difference_.inodes().find(change.ino);
    return inode == difference_.inodes().end() || !TRY(was_brought_back(ask_, change, inode->second, before_, now_));
  }

  Result<std::optional<Change>> first_inside(std::map<Ino, Change>& outside) const {
    std::set<Ino> inodes;
    for (const auto& [ino, change] : outside) inodes.insert(ino);
    for (const auto& [ino, path] : TRY(compare::Paths(ask_, now_).of_files(inodes, {}, ino_))) {
      Change& change = outside.at(ino);
      change.path = path;
      if (TRY(counts(change))) return std::optional(std::move(change));
    }
    return std::optional<Change>();
  }

  const compare::Ask& ask_;
  const compare::Difference& difference_;
  const Serial before_, now_;
  const std::string here_;
  const Ino ino_;
  std::string former_;
};

}  // namespace

Result<std::optional<Change>> first_change_of_copy(SnapshotSource& source, const std::string& name, const std::string& here, Ino ino) {
  const Serial before = TRY(source.serial_of(name)), now = TRY(source.now());
  const auto difference = TRY(compare::Difference::find(source.ask(), before, now));
  return KeptCopy(source.ask(), difference, before, now, here, ino).first_change();
}

}  // namespace varve::tool
