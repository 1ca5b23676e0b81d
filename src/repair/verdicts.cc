#include "repair/verdicts.h"

#include <dirent.h>

#include <algorithm>

namespace varve::repair {

namespace {

class Judge {
 public:
  Judge(const Facts& facts, Ino& next_ino, ActionLog& actions) : facts_(facts), next_ino_(next_ino), actions_(actions) {}

  Verdicts run();

 private:
  struct Directory {
    Ino parent;                      // where its name is kept
    const NameFact* name = nullptr;  // that name
    enum class State : std::uint8_t { unknown, visiting, connected, lost } state = State::unknown;
  };

  void judge_names();
  void remove(const NameFact& name, std::string why);
  void connect_directories();
  void connect(Ino start);
  bool is_orphan(const InodeFact& inode) const;
  void connect_others();
  void put_into_lost_found(const InodeFact& inode);
  Ino lost_found();
  void count_links();

  const Facts& facts_;
  Ino& next_ino_;
  ActionLog& actions_;
  Verdicts out_;
  std::unordered_map<Ino, Directory> directories_;
  std::unordered_map<Ino, std::uint32_t> names_;           // kept names of what is no directory
  std::unordered_map<Ino, std::uint64_t> entries_;         // kept names in a directory
  std::vector<const NameFact*> kept_;
  Ino lost_found_;
};

void Judge::remove(const NameFact& name, std::string why) {
  out_.removed.emplace(std::pair(name.directory, name.cookie), std::move(why));
}

void Judge::judge_names() {
  for (const InodeFact& inode : facts_.inodes)
    if (inode.type == DT_DIR) directories_[inode.ino];
  for (const NameFact& name : facts_.names) {
    const InodeFact* child = facts_.find(name.child);
    if (!child) {
      remove(name, fmt::format("inode {} does not exist", name.child));
      continue;
    }
    if (name.child == kRootIno) {
      remove(name, "leads to the root");
      continue;
    }
    if (child->type != name.type) out_.types[{name.directory, name.cookie}] = child->type;
    if (child->type != DT_DIR) {
      ++names_[name.child];
      ++entries_[name.directory];
      kept_.push_back(&name);
      continue;
    }
    // A directory keeps the name in the place where it says that it is, else the first.
    Directory& directory = directories_[name.child];
    const bool better = !directory.name || (directory.parent != child->parent && name.directory == child->parent);
    const NameFact* const loser = better ? directory.name : &name;
    if (loser) remove(*loser, fmt::format("directory {} has another name", name.child));
    if (better) directory.name = &name, directory.parent = name.directory;
  }
  for (const auto& [ino, directory] : directories_)
    if (directory.name) ++entries_[directory.parent];
}

bool Judge::is_orphan(const InodeFact& inode) const {
  return inode.nlink == 0 && std::ranges::binary_search(facts_.orphans, inode.ino);
}

// Follows the names of a directory up; what ends nowhere or in a circle goes to lost+found at its top.
void Judge::connect(Ino start) {
  std::vector<Ino> path;
  Ino at = start;
  while (directories_.contains(at) && directories_[at].state == Directory::State::unknown) {
    Directory& directory = directories_[at];
    directory.state = Directory::State::visiting;
    path.push_back(at);
    if (!directory.name) break;
    at = directory.parent;
  }
  const bool known = directories_.contains(at) && directories_[at].state == Directory::State::connected;
  if (!known && !path.empty()) {
    Ino top = path.back();
    if (const auto circle = std::ranges::find(path, at); circle != path.end() && directories_[at].name) {
      top = *std::min_element(circle, path.end());
      remove(*directories_[top].name, "leads in a circle");
      --entries_[directories_[top].parent];
      directories_[top].name = nullptr;
    }
    const InodeFact& fact = *facts_.find(top);
    if (is_orphan(fact) && entries_[top] == 0) out_.inodes[top].orphan = true;
    else put_into_lost_found(fact);
  }
  for (const Ino ino : path) directories_[ino].state = Directory::State::connected;
}

void Judge::connect_directories() {
  directories_[kRootIno].state = Directory::State::connected;
  directories_[kRootIno].parent = kRootIno;
  if (!facts_.find(kRootIno)) {
    out_.made.insert(kRootIno);
    actions_.add(ActionCode::directory_made, kRootIno, "the root");
  }
  for (const InodeFact& inode : facts_.inodes)
    if (inode.type == DT_DIR) connect(inode.ino);
}

void Judge::connect_others() {
  for (const InodeFact& inode : facts_.inodes) {
    if (inode.type == DT_DIR || names_.contains(inode.ino)) continue;
    if (is_orphan(inode)) out_.inodes[inode.ino].orphan = true;
    else put_into_lost_found(inode);
  }
}

Ino Judge::lost_found() {
  if (lost_found_) return lost_found_;
  const auto found = directories_.find(facts_.lost_found);
  if (found != directories_.end() && found->second.name && found->second.parent == kRootIno)
    return lost_found_ = facts_.lost_found;
  lost_found_ = next_ino_;
  ++next_ino_;
  out_.made.insert(lost_found_);
  out_.added[kRootIno].push_back({lost_found_, DT_DIR, "lost+found"});
  directories_[lost_found_].parent = kRootIno;
  directories_[lost_found_].state = Directory::State::connected;
  actions_.add(ActionCode::directory_made, lost_found_, "lost+found");
  return lost_found_;
}

void Judge::put_into_lost_found(const InodeFact& inode) {
  const Ino place = lost_found();
  const std::string name = fmt::format("#{}", inode.ino);
  out_.added[place].push_back({inode.ino, inode.type, name});
  if (inode.type == DT_DIR) directories_[inode.ino].parent = place;
  else ++names_[inode.ino];
  actions_.add(ActionCode::reconnected, inode.ino, name);
}

void Judge::count_links() {
  for (const auto& [ino, directory] : directories_) {
    if (out_.inodes[ino].orphan) continue;
    InodeVerdict& verdict = out_.inodes[ino];
    verdict.nlink += 2;
    verdict.parent = directory.parent;
    if (ino != kRootIno) ++out_.inodes[directory.parent].nlink;
  }
  for (const auto& [ino, count] : names_) out_.inodes[ino].nlink = count;
}

Verdicts Judge::run() {
  out_.judged = true;
  judge_names();
  connect_directories();
  connect_others();
  count_links();
  return std::move(out_);
}

}  // namespace

Verdicts judge(const Facts& facts, Ino& next_ino, ActionLog& actions) { return Judge(facts, next_ino, actions).run(); }

}  // namespace varve::repair
