// Everything a repair can do. Numbers are stable: scripts and bug reports may rely on them; never reuse one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace varve::repair {

enum class Safety : std::uint8_t {
  safe,   // nothing that users see is changed: what is written can be computed from the rest
  lossy,  // something is given up, made up or moved: only when asked to
};

// number, name, safety, sentence
#define VARVE_ACTIONS(X)                                                                  \
  X(801, superblock_found, lossy, "the superblock was found by a scan of the device")     \
  X(802, superblocks_written, safe, "both superblocks were written anew")                 \
  X(803, log_replayed, safe, "the log was replayed")                                      \
  X(804, log_cut, lossy, "the log was given up behind a damaged chunk")                   \
  X(805, changes_dropped, lossy, "changes in the log of inodes that are lost were dropped") \
  X(811, tree_rebuilt, safe, "the inode file was rebuilt")                                \
  X(812, leaves_found, safe, "parts of the inode file were found by a scan of the device") \
  X(813, old_copy_used, lossy, "an older copy replaces a lost part of the inode file")    \
  X(814, items_lost, lossy, "a part of the inode file is lost")                           \
  X(817, inode_older, lossy, "an older copy stands for it, so that it may be as it was before") \
  X(818, newest_leaves_taken, lossy, "the inode file was put together from the newest parts found, which fit all counts") \
  X(819, attributes_older, lossy, "its data is what it was, but size, times, owner and mode come from an older copy") \
  X(815, reverse_map_corrected, safe, "owners of blocks were recorded anew")              \
  X(816, free_map_corrected, safe, "the map of live blocks was corrected")                \
  X(821, item_removed, lossy, "an item without sense was removed")                        \
  X(822, attributes_made_up, lossy, "lost attributes of an inode were made up")           \
  X(823, attributes_corrected, safe, "attributes of an inode were corrected")             \
  X(824, inode_removed, lossy, "an inode of which nothing is left was removed")           \
  X(825, blocks_lost, lossy, "blocks of a file are lost and read as zeros")               \
  X(826, size_corrected, lossy, "the size of a file was set to hold all its blocks")      \
  X(827, xattrs_removed, lossy, "damaged extended attributes were removed")               \
  X(828, link_count_corrected, safe, "a link count was corrected")                        \
  X(829, block_count_corrected, safe, "the number of blocks of an inode was corrected")   \
  X(841, entry_removed, lossy, "a directory entry was removed")                           \
  X(842, entry_renamed, lossy, "a directory entry of a name that was there was renamed")  \
  X(843, entry_type_corrected, safe, "the type in a directory entry was corrected")       \
  X(844, entry_moved, safe, "a directory entry got another cookie")                       \
  X(845, index_rebuilt, safe, "the name index of a directory was rebuilt")                \
  X(846, entry_count_corrected, safe, "the number of entries of a directory was corrected") \
  X(847, parent_corrected, safe, "a directory was told where it is")                      \
  X(848, directory_made, lossy, "a directory was made")                                   \
  X(849, reconnected, lossy, "an inode without a name was put into lost+found")           \
  X(850, orphan_removed, safe, "an inode was taken from the list of orphans")             \
  X(861, snapshot_given_up, lossy, "a snapshot of which the root is lost was given up")    \
  X(862, snapshot_tables_corrected, safe, "the tables of snapshots were corrected")        \
  X(863, snapshot_tables_rebuilt, safe, "the tables of snapshots were rebuilt")            \
  X(864, snapshot_items_lost, lossy, "a part of the tables of snapshots is lost")           \
  X(865, snapshot_found, lossy, "an older copy told of a snapshot, and all that it needs is there")

enum class ActionCode : std::uint16_t {
#define X(number, name, safety, text) name = number,
  VARVE_ACTIONS(X)
#undef X
};

const char* name_of(ActionCode code);
const char* text_of(ActionCode code);
Safety safety_of(ActionCode code);

struct Action {
  ActionCode code{};
  Ino ino;       // none: no particular inode
  Ino last_ino;  // of a range of inodes; else none
  std::string detail;
  std::string entry;     // the name in the directory `ino` that it is about; else empty
};

// One line: "R841 inode 7 (dir): a directory entry was removed: …".
std::string to_line(const Action& action, const std::string& name = {});  // `name`: of the inode, if known

// Collects actions: all are counted, the first kMostPerCode of each code are kept.
class ActionLog {
 public:
  static constexpr std::uint64_t kMostPerCode = 1000;

  void add(ActionCode code, Ino ino = {}, std::string detail = {}, Ino last_ino = {});
  void add_entry(ActionCode code, Ino directory, std::string entry, std::string detail);
  std::uint64_t count(ActionCode code) const;
  std::uint64_t losses() const;  // lossy ones
  bool empty() const { return counts_.empty(); }
  bool is_safe() const { return losses() == 0; }

  const std::vector<Action>& kept() const { return kept_; }
  const std::map<ActionCode, std::uint64_t>& counts() const { return counts_; }

 private:
  std::vector<Action> kept_;
  std::map<ActionCode, std::uint64_t> counts_;
};

// What a repair that may lose nothing asks before it switches to what it has made: Errc::needs_fsck unless all is safe.
Status demand_safe(const ActionLog& actions, const std::string& device);

}  // namespace varve::repair
