// Brings `.mfile` and `.ffile` in line with the inode file, whatever they said before. Leaves that are right are kept when
// the map can be read; else it is made anew. So many leaves at a time are held in memory as the caller allows, and the tree is
// walked once for each lot; beside them it takes about 2 bytes for each block in use.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "check/claims.h"
#include "check/map_walk.h"
#include "repair/action.h"
#include "repair/node_space.h"
#include "tree/map_tree.h"

namespace varve::repair {

// Counts that the new superblock needs, found on the way.
struct TreeCounts {
  std::uint64_t live = 0;
  std::uint64_t data = 0;
  std::uint64_t unwritten = 0;
  std::uint64_t inodes = 0;
  std::uint64_t held = 0, held_data = 0;  // of `live` and `data`: by snapshots only
};

// Nodes of a map as it is, by address; only if all of them are good.
struct OldMap {
  std::map<BlockAddr, std::uint8_t> nodes;  // with their levels
  bool sound = false;
};
OldMap read_old_map(io::BlockDevice& device, const format::Superblock& super, format::TreeId tree);

class MapBuilder {
 public:
  // `super`: its inode_file and tables of snapshots are new, on the device; its maps and image are the old ones. `memory`: bytes of
  // leaves of `.mfile` at a time, at least one.
  MapBuilder(io::BlockDevice& device, format::Superblock& super, NodeSpace& space, ActionLog& actions, std::uint64_t memory);

  // Writes the maps (not flushed) and puts roots and counts into the superblock. `image`: block for the new image.
  Status run(BlockAddr image);

 private:
  struct Map {
    OldMap old;
    tree::MapRoot root;
    std::unique_ptr<tree::MapEditor> editor;
    std::set<std::uint64_t> leaves;  // touched
  };

  void claim_tree(check::Claims& claims, TreeCounts* counts);
  void claim_kept(check::Claims& claims, TreeCounts* counts);
  void claim_maps(check::Claims& claims) const;
  check::Claims fresh_claims() const;
  check::MapWalk walk_of(check::Context& context, format::TreeId tree) const;
  Status touch(Map& map, std::uint64_t record);
  Status touch_block(BlockAddr address);
  std::uint64_t segment_of(BlockAddr address) const { return (address - super_.first_segment) / super_.segment_blocks; }
  bool is_right(std::uint64_t segment, std::span<const std::byte> bytes, const check::Claims& claims) const;
  Status touch_wrong_owners(const check::Claims& claims);
  Status touch_wrong_segments(const check::Claims& claims);
  Status close();
  Status write_owners(check::Claims& claims, TreeCounts& counts, BlockAddr image);
  void fill_owners(check::Claims& claims, TreeCounts& counts, BlockAddr image);
  void fill_segments(const check::Claims& claims);
  void fill_segment(std::uint64_t segment, const check::Claims& claims);

  io::BlockDevice& device_;
  format::Superblock& super_;
  NodeSpace& space_;
  ActionLog& actions_;
  const std::uint64_t leaves_at_once_;
  tree::NodeCache cache_;
  tree::BlockingSource source_;
  Map reverse_, free_;
  std::map<BlockAddr, std::pair<format::TreeId, std::uint8_t>> given_;  // new map nodes
  std::vector<bool> nameless_;  // blocks that only lists of dead blocks name: their owners stay as they are recorded
  std::set<BlockAddr> released_;                                        // old ones that are not part of the new maps
};

}  // namespace varve::repair
