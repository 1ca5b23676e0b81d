#include "fsck/consequences.h"

#include "base/counted.h"
#include "base/listing.h"
#include "base/utf8.h"
#include "fsck/names.h"

namespace varve::fsck {

using repair::Action;
using repair::ActionCode;

namespace {

constexpr std::size_t kMostNames = 10;  // in a line; the lines of the actions have all of them

// By what is said of them: files by their numbers, names that are gone by themselves.
struct Consequences {
  std::set<Ino> older, attributes, lacking, moved;
  std::set<std::string> gone;
};

class Summary {
 public:
  explicit Summary(const Findings& f) : f_(f), parts_lost_(f.outcome.actions.count(ActionCode::items_lost) > 0) {
    for (const Action& action : f.outcome.actions.kept())
      if (action.code == ActionCode::entry_removed) has_lost_names_.insert(action.ino);
    for (const Action& action : f.outcome.actions.kept()) sort_in(action);
  }

  std::string text() const {
    std::string text =
        line("{} may be older than it was", "{} may be older than they were", names_of(sums_.older), {ActionCode::inode_older});
    text += line("{} keeps its data, but may have an older size, mode or owner, and older times",
                 "{} keep their data, but may have an older size, mode or owner, and older times", names_of(sums_.attributes),
                 {ActionCode::attributes_older});
    text += line("{} lacks something", "{} lack something", names_of(sums_.lacking), {ActionCode::blocks_lost, ActionCode::item_removed});
    text += line("{} had lost its name", "{} had lost their names", names_of(sums_.moved), {ActionCode::reconnected});
    text += names_line(sums_.gone);
    const repair::ActionLog& actions = f_.outcome.actions;
    if (actions.count(ActionCode::log_cut) > 0) text += "  what was written last is missing, wherever that was: the log was cut\n";
    if (actions.count(ActionCode::newest_leaves_taken) > 0 && text.empty())
      text += "  all counts are as they should be, so nothing seems to be missing\n";
    return text.empty() ? "" : (f_.in_place ? "After this repair:\n" : "After a repair:\n") + text;
  }

 private:
  bool has_name(Ino ino) const { return f_.names.contains(ino); }

  void sort_in(const Action& action) {
    switch (action.code) {
      case ActionCode::inode_older: sums_.older.insert(action.ino); return;
      case ActionCode::attributes_older: sums_.attributes.insert(action.ino); return;
      case ActionCode::items_lost:
        for (const Ino ino : {action.ino, action.last_ino})
          if (has_name(ino)) sums_.lacking.insert(ino);
        return;
      // A count that is wrong tells what is missing only where something is.
      case ActionCode::block_count_corrected:
      case ActionCode::entry_count_corrected:
        if (parts_lost_ && !has_lost_names_.contains(action.ino)) sums_.lacking.insert(action.ino);
        return;
      case ActionCode::item_removed:
      case ActionCode::attributes_made_up:
      case ActionCode::blocks_lost:
      case ActionCode::xattrs_removed:
        if (action.ino) sums_.lacking.insert(action.ino);
        return;
      case ActionCode::reconnected: sums_.moved.insert(action.ino); return;
      case ActionCode::entry_removed: sums_.gone.insert(below(action.ino, action.entry)); return;
      default: return;
    }
  }

  std::string below(Ino directory, const std::string& entry) const {
    if (entry.empty()) return "one in " + name_of(directory);
    return directory == kRootIno ? printable(entry) : name_of(directory) + "/" + printable(entry);
  }

  std::string name_of(Ino ino) const {
    const auto name = f_.names.find(ino);
    return name == f_.names.end() ? fmt::format("inode {}", ino) : printable(name->second);
  }

  std::set<std::string> names_of(const std::set<Ino>& inodes) const {
    std::set<std::string> names;
    for (const Ino ino : inodes) names.insert(name_of(ino));
    return names;
  }

  // `codes`: of which there may be more than are kept.
  std::string line(const char* one, const char* many, const std::set<std::string>& names, std::initializer_list<ActionCode> codes) const {
    if (names.empty()) return "";
    bool more = false;
    for (const ActionCode code : codes) more |= f_.outcome.actions.count(code) > repair::ActionLog::kMostPerCode;
    const std::string number = (more ? "more than " : "") + counted(names.size(), "file or directory", "files or directories");
    return fmt::format("  {}: {}\n", fmt::format(fmt::runtime(names.size() == 1 ? one : many), number), listing(names, kMostNames));
  }

  static std::string names_line(const std::set<std::string>& names) {
    if (names.empty()) return "";
    return fmt::format("  {} gone: {}\n", counted(names.size(), "name is", "names are"), listing(names, kMostNames));
  }

  const Findings& f_;
  const bool parts_lost_;
  std::set<Ino> has_lost_names_;  // directories: the names are told by themselves
  Consequences sums_;
};

}  // namespace

std::set<Ino> concerned_inodes(const repair::ActionLog& actions) {
  std::set<Ino> inodes;
  for (const Action& action : actions.kept())
    for (const Ino ino : {action.ino, action.last_ino})
      if (ino && ino != format::kOrphanIno) inodes.insert(ino);
  return inodes;
}

std::string consequence_lines(const Findings& findings) { return Summary(findings).text(); }

}  // namespace varve::fsck
