#include "compare/change_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "compare/paths.h"

namespace varve::compare {

namespace {

using Kind = Change::Kind;

std::uint32_t mode_of(const InodeChange& change) {
  return change.after ? change.after->mode : change.before ? change.before->mode : 0;
}

bool other_times(const InodeChange& change) {
  const format::Attributes &was = *change.before, &is = *change.after;
  const bool of_names = change.entries || !change.lost.empty() || !change.gained.empty();
  const bool of_content = change.content_differs();
  const bool mtime = was.mtime != is.mtime && !of_content && !change.entries;
  // Each change sets it. By itself it says that something was changed and changed back.
  const bool ctime = was.ctime != is.ctime && !of_names && !of_content;
  return mtime || ctime || was.btime != is.btime;
}

// Apart from its names.
std::vector<std::string> what_differs(const InodeChange& change) {
  std::vector<std::string> what;
  if (change.content_differs()) what.emplace_back("content");
  if (change.target) what.emplace_back("target");
  if (change.before && change.after) {
    const format::Attributes &was = *change.before, &is = *change.after;
    if (was.mode != is.mode) what.emplace_back("mode");
    if (was.uid != is.uid || was.gid != is.gid) what.emplace_back("owner");
    if (was.flags != is.flags) what.emplace_back("flags");
  }
  if (change.xattrs) what.emplace_back("xattrs");
  if (!change.runs.empty() && !change.content_differs()) what.emplace_back("allocation");
  if (what.empty() && change.before && change.after && other_times(change)) what.emplace_back("times");
  return what;
}

class Lister {
 public:
  Lister(const Ask& ask, const Difference& difference, Serial before, Serial after)
      : difference_(difference), former_(ask, before), present_(ask, after) {}

  Result<std::vector<Change>> list() {
    former_.know_directories(difference_.inodes(), Paths::Side::before);
    present_.know_directories(difference_.inodes(), Paths::Side::after);
    for (const auto& [ino, change] : difference_.inodes()) TRY(add(ino, change));
    TRY(name_the_others());
    join_replaced();
    std::ranges::sort(list_, [](const Change& a, const Change& b) { return std::tie(a.path, a.kind) < std::tie(b.path, b.kind); });
    return std::move(list_);
  }

 private:
  Status add(Ino ino, const InodeChange& change) {
    const bool was = change.was_there(), is = change.is_there();
    std::size_t renamed = was && is ? std::min(change.lost.size(), change.gained.size()) : 0;
    for (std::size_t i = 0; i < renamed; ++i) {
      std::string path = TRY(present_.of(change.gained[i])), former = TRY(former_.of(change.lost[i]));
      list_.push_back({Kind::renamed, ino, mode_of(change), std::move(path), std::move(former), {}});
    }
    if (!was && !change.gained.empty()) created_.emplace(change.gained.front(), list_.size());
    for (std::size_t i = renamed; i < change.gained.size(); ++i)
      list_.push_back({was || i > 0 ? Kind::linked : Kind::created, ino, mode_of(change), TRY(present_.of(change.gained[i])), {}, {}});
    for (std::size_t i = renamed; i < change.lost.size(); ++i) {
      if (!is) removed_.emplace(change.lost[i], list_.size());
      list_.push_back({is ? Kind::unlinked : Kind::removed, ino, mode_of(change), TRY(former_.of(change.lost[i])), {}, {}});
    }
    if (!was || !is) return {};
    Change other{Kind::metadata, ino, mode_of(change), {}, {}, what_differs(change)};
    if (other.what.empty()) return {};
    if (other.what.front() == "content" || other.what.front() == "target") other.kind = Kind::modified;
    if (!change.gained.empty()) other.path = TRY(present_.of(change.gained.front()));
    else if (S_ISDIR(other.mode)) other.path = TRY(present_.of_directory(ino));
    else nameless_.insert(ino);
    list_.push_back(std::move(other));
    return {};
  }

  // Files whose names have stayed: nothing that has changed says what they are.
  Status name_the_others() {
    const auto paths = TRY(present_.of_files(nameless_));
    for (Change& change : list_)
      if (change.path.empty()) {
        const auto path = paths.find(change.ino);
        change.path = path != paths.end() ? path->second : "inode " + std::to_string(change.ino.v);
      }
    return {};
  }

  // What programs do that write a new file and give it the name of the old one. The directory may have another path by now.
  void join_replaced() {
    std::set<std::size_t> joined;
    for (const auto& [name, at] : created_) {
      const auto former = removed_.find(name);
      if (former == removed_.end()) continue;
      const std::uint32_t was = list_[former->second].mode, is = list_[at].mode;
      if ((was & S_IFMT) != (is & S_IFMT) || S_ISDIR(is)) continue;
      list_[at].kind = Kind::replaced;
      joined.insert(former->second);
    }
    std::vector<Change> rest;
    for (std::size_t i = 0; i < list_.size(); ++i)
      if (!joined.contains(i)) rest.push_back(std::move(list_[i]));
    list_ = std::move(rest);
  }

  const Difference& difference_;
  Paths former_, present_;
  std::vector<Change> list_;
  std::set<Ino> nameless_;
  std::map<Name, std::size_t> created_, removed_;  // where they are in the list
};

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"created", "removed", "replaced", "renamed", "linked", "unlinked", "modified", "metadata"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<std::vector<Change>> list_changes(const Ask& ask, const Difference& difference, Serial before, Serial after) {
  return Lister(ask, difference, before, after).list();
}

}  // namespace varve::compare
