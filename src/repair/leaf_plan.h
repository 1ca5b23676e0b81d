// Which leaves make up the inode file. They are those that the tree leads to. For the parts where it does not, they are
// what a scan of the device finds: first leaves that still are live, then older copies, newest first.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "check/check.h"
#include "format/node.h"
#include "format/superblock.h"
#include "io/block_device.h"
#include "repair/action.h"
#include "repair/key_range.h"

namespace varve::repair {

enum class Trust : std::uint8_t {
  tree,      // the tree leads to it
  found,     // no way leads to it, but it is live
  old_copy,  // of a former checkpoint: its blocks may belong to others now
};

struct LeafPiece {
  BlockAddr address;
  std::uint32_t crc = 0;
  KeyRange range;  // its items in here count
  Trust trust = Trust::tree;
  Serial serial;       // of what a scan has found: the checkpoint that wrote it
  bool whole = true;   // all its items count; one that was cut has been superseded, since trees write leaves anew as a whole
};

struct LeafPlan {
  std::vector<LeafPiece> leaves;   // ascending, ranges disjoint
  std::vector<KeyRange> lost;      // of which nothing is known
  std::vector<BlockAddr> nodes;    // of the tree, leaves included, as far as it could be followed
  std::uint64_t misplaced_items = 0;  // in leaves that do not stand for their keys: left out
  bool sound = true;               // the tree has no fault: it can be kept, and changed by merging
  bool leaf_lost = false;          // a leaf that the tree names is not there; otherwise only the way to leaves
};

// May this node be one that only snapshots have? Then it is no newer than an old copy.
using MayBeHeld = std::function<bool(BlockAddr)>;

// Of the inode file. Reads all nodes of the tree; reads the whole device only if parts are missing.
// What became of the gaps is told by report_finds().
LeafPlan make_leaf_plan(io::BlockDevice& device, const format::Superblock& super, const MayBeHeld& may_be_held, ActionLog& actions,
                        check::Progress* progress);
// The same of `.sfile`, which nothing but live leaves can make good.
LeafPlan make_tables_plan(io::BlockDevice& device, const format::Superblock& super, ActionLog& actions, check::Progress* progress);

using ItemVisit = std::function<Status(const format::ItemRef&, Trust)>;

// The items of a plan in key order, each key once. Stops at the first error of visit. A leaf that has become unreadable since the
// plan was made is Errc::io.
Status for_each_item(io::BlockDevice& device, const LeafPlan& plan, const ItemVisit& visit);

}  // namespace varve::repair
