// What snapshots keep, as a repair finds it and as it is to be. Their trees stay as they are, damaged or not. The tables in `.sfile`
// are read as far as they can be, and brought in line with the trees. Lists of dead blocks can be told from these, and places of moved
// blocks from their names. Of what a lost part of the tables said, LostTables finds what it can.
// A snapshot whose tree has no root any more is given up: it becomes one that is being deleted.
// Memory: as a check takes, and the tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/kept_trees.h"
#include "repair/action.h"
#include "repair/edits.h"
#include "repair/leaf_plan.h"
#include "repair/lost_tables.h"
#include "repair/node_space.h"

namespace varve::repair {

class KeptStates {
 public:
  // `old` outlives this. Reads the whole device if parts of `.sfile` are missing.
  KeptStates(io::BlockDevice& device, const format::Superblock& old, ActionLog& actions, check::Progress* progress);
  Status read();

  // What only snapshots have, as far as the lists say; true for all where some of them are lost.
  bool may_be_held(BlockAddr place) const { return !plan_.lost.empty() || (place.v < listed_.size() && listed_[place.v]); }
  void protect(NodeSpace& space) const;  // all that they name

  // `super`: that of the new checkpoint, with its live tree on the device. Writes the tables and puts them into it.
  Status write(NodeSpace& space, format::Superblock& super);

 private:
  static constexpr std::size_t kRunsOfPiece = 32;  // that is added
  struct Held {  // a block that no list has
    BlockAddr place;
    format::ReverseEntry owner;
    Serial holder;
  };

  Status take(const format::ItemRef& item);
  void find_lost();
  void report_lost(const LostTables& found, std::uint64_t missing);
  void give_up_lost_ones();
  bool give_up_unclaimed(const check::Report& report);
  void give_up(format::SnapshotItem& item, const std::string& why);
  void complete_places();
  format::SnapshotItem* item_of(Serial serial);
  bool has_birth_of(Serial holder, const format::DeadRun& run, BlockAddr place) const;
  Serial death_of(const Held& held, Serial newest) const;
  BlockAddr named_at(BlockAddr place, Serial death) const;

  void claim_others(check::Context& context, check::Claims& claims) const;
  void bring_in_line(const format::Superblock& super);
  template <class Keep>
  void filter_lists(Keep keep);
  void add_to_lists(std::vector<Held> held, const format::Superblock& super);
  format::DeadRun run_of(const Held& held, Serial death, const format::Superblock& super);
  void count();
  void encode();
  void put(const format::Key& key, format::Bytes value);

  io::BlockDevice& device_;
  const format::Superblock& old_;
  ActionLog& actions_;
  check::Progress* progress_;
  LeafPlan plan_;
  check::SnapshotTables tables_;
  std::map<format::Key, format::Bytes> found_;  // items as they were read
  Edits edits_;
  std::vector<bool> listed_;                // by place
  bool places_lost_ = false;                // lists of dead blocks may lead elsewhere
};

}  // namespace varve::repair
