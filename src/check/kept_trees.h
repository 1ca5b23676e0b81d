// Snapshots: the tables in `.sfile`, the trees that they keep, and whether both agree on what is live for them alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "check/claims.h"
#include "check/data_verifier.h"
#include "check/tree_walk.h"
#include "format/snapshot.h"

namespace varve::check {

// What `.sfile` says.
struct SnapshotTables {
  std::vector<format::SnapshotItem> items;  // oldest first
  std::map<format::Key, BlockAddr> places;  // by the key of the item
  std::map<format::Key, BlockAddr> names;
  struct Piece {
    Serial holder;
    format::DeadPiece piece;
    format::Key key;
  };
  std::uint64_t listed = 0;  // blocks in `dead`
  std::vector<Piece> dead;
  bool complete = true;

  Status take(const format::ItemRef& item, const format::Superblock& super);  // Errc::corrupt: not one that can be here
  // Where the block stands that a tree of checkpoint `seen` calls so.
  BlockAddr place_of(BlockAddr named, Serial seen) const;
  // From now on place_of() notes which places without a name it has followed.
  void watch_nameless();

  // The keys of places that no name leads back to, and whether place_of() has followed them since.
  mutable std::map<format::Key, bool> nameless;
};

// When blocks of files were written, as the lists of dead blocks say it, by where they stand.
class ListedClocks {
 public:
  explicit ListedClocks(const SnapshotTables& tables);
  // Does some list say another clock than this?
  bool contradict(BlockAddr place, std::uint32_t clock) const;

 private:
  struct Stretch {
    BlockAddr place;
    std::uint64_t length;
    std::uint32_t clock;
  };
  std::vector<Stretch> stretches_;  // ascending
};

// The checkpoint that wrote a node, as it says itself. Nothing: it cannot be read, or is none.
std::optional<Serial> node_birth(io::BlockDevice& device, BlockAddr place);

class KeptTrees {
 public:
  explicit KeptTrees(Context& context) : context_(context) {}
  // With tables that the caller has read or made.
  KeptTrees(Context& context, SnapshotTables tables) : context_(context), tables_(std::move(tables)), has_tables_(true) {}

  // After the newest trees have been claimed. `verifier` may be null.
  void claim(Claims& claims, DataVerifier* verifier);
  // After all claims: lists of dead blocks, and names of moved ones.
  void check_tables(const Claims& claims);
  // While claim() is at work: the snapshot whose tree it is in, if it is in one.
  const format::SnapshotItem* walked() const { return walked_; }

 private:
  void read_tables(Claims& claims);
  void report_missing();
  void claim_tree_of(const format::SnapshotItem& item, Claims& claims, DataVerifier* verifier, const ListedClocks& clocks);
  void claim_listed(Claims& claims);
  void check_lists(const Claims& claims);
  void check_places();
  void check_list_of(const format::SnapshotItem& item, std::uint64_t dead, std::uint64_t alone);
  void check_run(const SnapshotTables::Piece& listed, const format::DeadRun& run, const Claims& claims);
  void check_number(const SnapshotTables::Piece& listed);
  const format::SnapshotItem* item_of(Serial serial) const;
  const format::SnapshotItem* newest_before(Serial serial) const;

  Context& context_;
  SnapshotTables tables_;
  bool has_tables_ = false;
  const format::SnapshotItem* walked_ = nullptr;
  std::vector<bool> only_kept_;  // by address: of no newest tree
};

}  // namespace varve::check
