// Brings a file or a tree of a filesystem back to what a snapshot of the same filesystem has.
//
// A file that is still the same one is changed in place, and only where its blocks differ: it keeps its inode, its other names, and the
// blocks that both have. A file that has gone, or another one has its name, is made beside it and then renamed, so that it is there as a
// whole or not at all. What is interrupted is completed by doing the same again.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "compare/difference.h"
#include "compare/entries.h"
#include "compare/kept_inode.h"
#include "compare/question.h"
#include "send/host_file.h"
#include "send/sent.h"

namespace varve::send {

struct RestoreOptions {
  bool removes = false;    // what is new since
  bool only_says = false;  // changes nothing
  bool only_missing = false;  // nothing where the path is there
};

struct NotRestored {
  std::string path, why;  // `why` names the path, too
};

struct Restored {
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;         // that were written
  std::vector<std::string> left{};      // directories that stand where a file was, with what is in them
  std::vector<std::string> mounts{};    // where something else is mounted: what the filesystem has there stays as it is
  std::vector<NotRestored> failures{};  // what else was not restored
};

class Restorer {
 public:
  // What is done to which path: "created", "modified", "replaced", "linked", "removed", "metadata".
  using Tell = std::function<void(const char* what, const std::string& path)>;

  // `root`: the mounted filesystem; `difference`: from what it has at this moment to the snapshot. Nobody needs to keep that moment: what
  // is written over would only hold the room that is wanted.
  Restorer(const compare::Ask& ask, const compare::Difference& difference, Serial snapshot, Descriptor root, RestoreOptions options,
           Tell tell)
      : ask_(ask), changes_(difference.inodes()), snapshot_(snapshot), root_(std::move(root)), options_(options), tell_(std::move(tell)) {}

  // "/letters/one", from the root of the filesystem on. What cannot be restored below it is named in restored(), and the rest goes on.
  // Errc::not_found: the snapshot does not have it. Errc::exists: only what is missing was asked for, and it is there, or something that is
  // no directory stands above it. Errc::no_space, Errc::read_only, Errc::interrupted: it has ended before all was done.
  Status restore(const std::string& path);

  // Tells what was done so far, also where restore() has failed.
  const Restored& restored() const { return restored_; }

  // Nothing is changed by asking.
  Result<bool> has(const std::string& path);

 private:
  using Entry = compare::Entries::Entry;
  using Here = std::map<std::string, Entry>;  // what a directory has now

  static bool changes_itself(const compare::InodeChange& change);  // is there more to do than to its names?
  Result<std::vector<Entry>> way_to(const std::string& path);
  Result<Entry> walk_to(const std::string& path);
  Status bring_back(const std::string& path, const Entry& directory);
  Result<std::vector<Entry>> entries_of(Ino directory);
  Result<Here> here(const std::string& directory);
  Status restore_named(const std::string& parent, const Entry& entry, const Here& here);
  Status restore_directory(const std::string& path, Ino ino, bool is_new);
  Status enter(const std::string& path, const Entry* now);
  Status restore_file(const std::string& path, const Entry& entry, const Entry* now);
  Status make_file(const std::string& path, const Entry& entry, const Entry* now);
  Result<std::set<Ino>> moved_files();
  Status find_links(const std::string& path, Ino directory);
  Result<Here> here_if_known(const std::string& directory);
  Result<std::vector<Entry>> entries_if_known(Ino directory);
  Status change_in_place(const std::string& path, const compare::InodeChange& change, Ino ino);
  Status add_other_blocks(int file, const std::string& path, Ino ino, const compare::BlockRun& run, std::uint64_t size,
                          std::vector<compare::BlockRun>& others);
  Result<std::vector<compare::BlockRun>> other_blocks(const std::string& path, Ino ino, std::uint64_t size,
                                                      const std::vector<compare::BlockRun>& runs);
  Spot spot_to_change(const std::string& path) const;
  bool look_at(const std::string& path, struct stat& status) const;
  bool is_one_file(const std::string& one, const std::string& other) const;
  Result<bool> is_there_already(const std::string& path, Ino ino);
  Result<bool> has_content(const std::string& path, Ino ino, const compare::KeptInode& kept);
  Status make_beside(const std::string& path, Ino ino, bool replaces);
  Status fill_beside(const std::string& path, const std::string& beside, Ino ino, const compare::KeptInode& kept, bool replaces);
  Status make_at(const std::string& path, Ino ino, const compare::KeptInode& kept);
  Result<bool> was_left(const std::string& path, Ino ino, const compare::KeptInode& kept);
  Status link(const std::string& from, const std::string& path, bool replaces);
  Status write_runs(const std::string& path, Ino ino, std::uint64_t size, const std::vector<compare::BlockRun>& runs);
  Status clear(int file, const std::string& path, const compare::BlockRun& run, std::uint64_t size);
  Status write_data(int file, const std::string& path, Ino ino, std::uint64_t from, std::uint64_t to);
  Result<compare::KeptInode> kept_directory(Ino ino);
  Result<bool> changes_directory(const std::string& path, Ino ino, const compare::InodeChange& change);
  Status finish(const std::string& path, const compare::KeptInode& kept);
  Status remove_new(const std::string& path, const Entry& entry);
  Result<bool> remove(const std::string& path, bool is_directory);
  Result<bool> remove_below(const std::string& path, bool is_directory);
  bool is_mount_point(const std::string& path) const;
  Status pass_over(const std::string& path);
  bool ends_all(const Error& why) const;
  Status unless_it_ends_all(const std::string& path, const Status& done);
  Status give_name(const std::string& path, const std::string& beside, bool replaces);
  void note(const char* what, const std::string& path);
  const std::string& meant_by(const std::string& path) const;
  Error failed(const std::string& action, const std::string& path) const;

  const compare::Ask& ask_;
  const std::map<Ino, compare::InodeChange>& changes_;  // from now to the snapshot
  const Serial snapshot_;
  const Descriptor root_;
  const RestoreOptions options_;
  const Tell tell_;
  std::map<Ino, std::string> linked_;  // files with several names: one that they have, the others are to be links
  std::set<ino_t> taken_;              // files with several names that stand for one of the snapshot
  // The name of a file while it is made, and the one that it is to have: messages are about that.
  std::string beside_, to_be_;
  Restored restored_;
};

}  // namespace varve::send
