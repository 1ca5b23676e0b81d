// Everything the checker can find. Numbers are stable: scripts and bug reports may rely on them; never reuse one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace varve::check {

enum class Severity : std::uint8_t {
  note,     // nothing is wrong
  warning,  // harmless now, or repaired by the next mount
  error,    // damage
};

// number, name, severity, sentence
#define VARVE_PROBLEMS(X)                                                                               \
  X(101, superblock_unreadable, error, "a superblock copy cannot be read")                              \
  X(102, superblock_damaged, error, "a superblock copy is damaged")                                     \
  X(103, superblocks_differ, warning, "the superblock copies differ, as after a crash")                 \
  X(104, device_too_small, error, "the device is smaller than the filesystem")                          \
  X(105, image_wrong, error, "the superblock's image disagrees with the superblock")                    \
  X(106, run_not_free, error, "a head or the chain is to go on over live blocks")                       \
  X(107, runs_overlap, error, "two heads are to go on over the same blocks")                            \
  X(108, count_wrong, error, "a count in the superblock is wrong")                                      \
  X(109, superblock_lost, error, "no superblock is where it should be")                                 \
  X(110, field_wrong, error, "a field of the superblock is impossible")                                 \
  X(111, superblock_torn, warning, "a superblock copy is torn, as after a crash")                       \
  X(201, needs_recovery, note, "the log must be replayed; what follows is the state of the checkpoint") \
  X(202, log_after_clean, error, "marked clean, but the log goes on")                                   \
  X(203, not_unmounted, note, "was not unmounted, but there is nothing to replay")                      \
  X(204, log_damaged, error, "the log is damaged")                                                      \
  X(301, node_unreadable, error, "a tree node cannot be read")                                          \
  X(302, node_damaged, error, "a tree node is damaged")                                                 \
  X(303, node_from_future, error, "a tree node is newer than the checkpoint")                           \
  X(304, keys_out_of_order, error, "keys are out of order between nodes")                               \
  X(305, block_sum_wrong, error, "the number of file blocks below a node is wrong")                     \
  X(306, map_node_misplaced, error, "a node of a map stands in the wrong place")                        \
  X(307, map_beyond_end, error, "a map has nodes beyond its end")                                       \
  X(308, not_compared, warning, "part of the metadata is unreadable: counts and links were not checked") \
  X(401, address_outside, error, "a reference leads outside the segments")                              \
  X(402, claimed_twice, error, "a block has more than one owner")                                       \
  X(403, free_map_bits_wrong, error, "the map of live blocks of a segment is wrong")                    \
  X(404, free_map_counter_wrong, error, "a counter of a segment is wrong")                              \
  X(405, free_map_record_damaged, error, "the record of a segment makes no sense")                      \
  X(406, reverse_map_wrong, error, "the recorded owner of a block is wrong")                            \
  X(407, data_unreadable, error, "a block of a file cannot be read")                                    \
  X(408, data_damaged, error, "a block of a file does not match its checksum")                          \
  X(501, no_attributes, error, "an inode has items but no attributes")                                  \
  X(502, value_damaged, error, "an item has an impossible value")                                       \
  X(503, inode_number_too_high, error, "an inode number was not handed out yet")                        \
  X(504, extents_overlap, error, "extents of a file overlap")                                           \
  X(505, extent_past_end, error, "a file owns written blocks behind its end")                           \
  X(506, item_misplaced, error, "an item of a kind that this inode cannot have")                        \
  X(507, blocks_wrong, error, "the number of blocks of an inode is wrong")                              \
  X(508, pieces_missing, error, "pieces of extended attributes or of a symlink are missing")            \
  X(509, symlink_wrong, error, "a symlink has no valid target")                                         \
  X(510, clock_from_future, warning, "a block was written later than the log clock says")               \
  X(511, attributes_wrong, error, "attributes do not fit the type of the inode")                        \
  X(601, entry_not_indexed, error, "a directory entry is missing in the name index")                    \
  X(602, index_without_entry, error, "the name index points to no directory entry")                     \
  X(603, name_twice, error, "a directory has two entries of the same name")                             \
  X(604, cookie_wrong, error, "a directory entry has an impossible cookie")                             \
  X(605, entry_count_wrong, error, "the number of entries of a directory is wrong")                     \
  X(606, entry_dangling, error, "a directory entry leads to no inode")                                  \
  X(607, entry_type_wrong, error, "a directory entry has the wrong type")                               \
  X(608, parent_wrong, error, "a directory does not know where it is")                                  \
  X(609, directory_twice, error, "a directory has more than one name")                                  \
  X(610, unconnected, error, "a directory cannot be reached from the root")                             \
  X(611, link_count_wrong, error, "the link count of an inode is wrong")                                \
  X(612, not_in_orphans, error, "an inode without a name is not in the list of orphans")                \
  X(613, orphan_has_links, error, "the list of orphans names an inode that has links")                  \
  X(614, orphan_missing, error, "the list of orphans names an inode that does not exist")               \
  X(615, no_root, error, "there is no root directory")                                                  \
  X(701, snapshot_item_damaged, error, "an item of a snapshot's tables has an impossible value")        \
  X(702, held_not_listed, error, "blocks that only snapshots hold are in no list of dead blocks")       \
  X(703, listed_not_held, error, "a list of dead blocks has one that is not dead, or not of its snapshot") \
  X(704, place_wrong, error, "the place of a moved block and its name do not fit together")             \
  X(705, snapshot_damaged, error, "a part of a snapshot's tree is damaged")                             \
  X(706, snapshot_lost, error, "a snapshot's tree has no root any more")                                \
  X(707, snapshot_tables_torn, error, "a part of the tables of snapshots cannot be read")

enum class Code : std::uint16_t {
#define X(number, name, severity, text) name = number,
  VARVE_PROBLEMS(X)
#undef X
};

const char* name_of(Code code);
const char* text_of(Code code);
Severity severity_of(Code code);

struct Where {
  BlockAddr address;  // none: no particular block
  Ino ino;            // none: no particular inode
};

struct Problem {
  Code code{};
  Where where;
  std::string detail;
  std::uint64_t blocks = 1;      // with add_block(): so many behind each other, on the device and in the file
  std::uint64_t file_block = 0;  // the first of them in the file
  std::string snapshot;          // that has it, where the filesystem in use does not; else empty
};

// Collects problems: all are counted, the first kMostPerCode of each code are kept; of blocks behind each other as one. Not thread-safe.
class ProblemLog {
 public:
  static constexpr std::uint64_t kMostPerCode = 100;

  void add(Code code, Where where, std::string detail = {}, const std::string& snapshot = {});
  // Of a block of a file. One that follows the last one of its code, with the same detail, becomes one problem with it.
  void add_block(Code code, Where where, std::uint64_t file_block, std::string detail = {}, const std::string& snapshot = {});
  std::uint64_t count(Code code) const;
  std::uint64_t not_kept(Code code) const;

  const std::vector<Problem>& kept() const { return kept_; }
  const std::map<Code, std::uint64_t>& counts() const { return counts_; }

 private:
  std::uint64_t kept_blocks(Code code) const;

  std::vector<Problem> kept_;
  std::map<Code, std::uint64_t> counts_;
  std::map<Code, std::vector<std::size_t>> places_;  // in kept_
};

}  // namespace varve::check
