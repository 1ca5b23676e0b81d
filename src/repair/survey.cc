#include "repair/survey.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/invariant.h"
#include "io/patient_read.h"
#include "repair/live_owners.h"

namespace varve::repair {

namespace {

// The CRC of a block, or nothing when it cannot be read.
class BlockSums {
 public:
  explicit BlockSums(io::BlockDevice& device) : device_(device), buffer_(kBlockSize) {}
  bool matches(BlockAddr address, std::uint32_t crc) {
    return io::read_patiently(device_, address.v * kBlockSize, buffer_.span()).ok() && crc32c(buffer_.span()) == crc;
  }

 private:
  io::BlockDevice& device_;
  AlignedBuffer buffer_;
};

// Of a block of a file in its place, for a sum in any order (the finaliser of SplitMix64).
std::uint64_t mark_of(BlockAddr address, std::uint64_t block) {
  std::uint64_t x = address.v * 0x9E3779B97F4A7C15ULL + block;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
  return x ^ x >> 31;
}

class FactCollector : public InodeConsumer {
 public:
  FactCollector(io::BlockDevice& device, bool has_tails, Survey& out) : sums_(device), out_(out), has_tails_(has_tails) {}

  void orphan(Ino ino) override { out_.facts.orphans.push_back(ino); }
  void extent(Ino ino, std::uint64_t first, const format::Extent& extent, Trust trust) override;
  void inode(CleanInode inode) override;

 private:
  BlockSums sums_;
  Survey& out_;
  const bool has_tails_;    // then no map tells whether the content is the newest
  std::uint64_t data_ = 0;  // of the inode that is passing
};

void FactCollector::extent(Ino ino, std::uint64_t first, const format::Extent& extent, Trust trust) {
  out_.file_blocks += extent.length;
  for (std::uint64_t i = 0; !extent.unwritten && i < extent.length; ++i) data_ += mark_of(extent.address + i, first + i);
  for (std::uint64_t i = 0; !extent.unwritten && i < extent.length; ++i) {
    const BlockAddr address = extent.address + i;
    if (trust == Trust::old_copy && !sums_.matches(address, extent.crcs[i])) out_.lost.emplace(ino, first + i);
    else if (out_.facts.claimed[address.v]) out_.facts.disputed.insert(address);
    else out_.facts.claimed[address.v] = true;
  }
}

void FactCollector::inode(CleanInode inode) {
  const bool counts_right = inode.exists && inode.attributes.blocks == inode.owned &&
                            (inode.type() != DT_DIR || inode.attributes.entries == inode.entries.size());
  out_.counts_right &= counts_right;
  const std::uint64_t data = std::exchange(data_, 0);
  if (inode.exists && inode.is_old && inode.type() == DT_REG) out_.old_files[inode.ino].here = data + (has_tails_ ? 1 : 0);
  if (!inode.exists) return;
  INVARIANT(out_.facts.inodes.empty() || out_.facts.inodes.back().ino < inode.ino);  // Facts::find() relies on it
  out_.facts.inodes.push_back({inode.ino, inode.attributes.parent, inode.attributes.nlink, inode.type()});
  for (const CleanEntry& entry : inode.entries) {
    out_.facts.names.push_back({inode.ino, entry.cookie, entry.ino, entry.type});
    if (inode.ino == kRootIno && entry.name == "lost+found") out_.facts.lost_found = entry.ino;
  }
}

// The claims to the disputed blocks.
class DisputeCollector : public InodeConsumer {
 public:
  struct Claim {
    Ino ino;
    std::uint64_t block = 0;
    std::uint32_t clock = 0;
    std::uint32_t crc = 0;
  };

  explicit DisputeCollector(const std::unordered_set<BlockAddr>& disputed) : disputed_(disputed) {}

  void extent(Ino ino, std::uint64_t first, const format::Extent& extent, Trust) override {
    for (std::uint64_t i = 0; !extent.unwritten && i < extent.length; ++i)
      if (disputed_.contains(extent.address + i))
        claims_[extent.address + i].push_back({ino, first + i, extent.clock, extent.crcs[i]});
  }
  void inode(CleanInode) override {}

  const std::map<BlockAddr, std::vector<Claim>>& claims() const { return claims_; }

 private:
  const std::unordered_set<BlockAddr>& disputed_;
  std::map<BlockAddr, std::vector<Claim>> claims_;
};

void settle(io::BlockDevice& device, const DisputeCollector& disputes, const std::unordered_set<BlockAddr>& nodes,
            LostBlocks& lost) {
  BlockSums sums(device);
  for (const auto& [address, claims] : disputes.claims()) {
    const DisputeCollector::Claim* winner = nullptr;
    bool winner_matches = false;
    for (const auto& claim : claims) {
      if (nodes.contains(address)) break;
      const bool matches = sums.matches(address, claim.crc);
      if (winner && std::pair(winner_matches, winner->clock) >= std::pair(matches, claim.clock)) continue;
      winner = &claim;
      winner_matches = matches;
    }
    for (const auto& claim : claims)
      if (&claim != winner) lost.emplace(claim.ino, claim.block);
  }
}

Status run(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan, const LostBlocks& lost,
           InodeConsumer& consumer) {
  ActionLog unheard;  // the correcting pass says it again
  InodeCleaner cleaner(super, lost, unheard, consumer);
  TRY(for_each_item(device, plan, [&](const format::ItemRef& item, Trust trust) -> Status {
    cleaner.add(item, trust);
    return {};
  }));
  cleaner.finish();
  return {};
}

}  // namespace

const InodeFact* Facts::find(Ino ino) const {
  const auto found = std::ranges::lower_bound(inodes, ino, {}, &InodeFact::ino);
  return found != inodes.end() && found->ino == ino ? &*found : nullptr;
}

// What `.mfile` has of files that may be older. What snapshots hold of them counts too: then they seem so.
void add_map_sums(io::BlockDevice& device, const format::Superblock& super, std::map<Ino, DataSum>& files) {
  if (files.empty()) return;
  const bool complete = for_each_owner(device, super, [&](BlockAddr address, const format::ReverseEntry& entry) {
    if (entry.owner != format::Owner::file_block) return;
    if (const auto file = files.find(entry.ino); file != files.end()) file->second.in_map += mark_of(address, entry.block);
  });
  for (auto& [ino, sum] : files) sum.map_known = complete;
}

Result<Survey> survey(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan) {
  Survey result;
  Facts& facts = result.facts;
  facts.claimed.resize(super.device_blocks);
  std::unordered_set<BlockAddr> nodes(plan.nodes.begin(), plan.nodes.end());
  for (const LeafPiece& leaf : plan.leaves)
    if (leaf.trust == Trust::found) nodes.insert(leaf.address);
  for (const BlockAddr node : nodes) facts.claimed[node.v] = true;
  {
    FactCollector collector(device, super.features.incompat & format::kIncompatTails, result);
    const LostBlocks none;
    TRY(run(device, super, plan, none, collector));
  }
  if (!facts.disputed.empty()) {
    DisputeCollector disputes(facts.disputed);
    TRY(run(device, super, plan, result.lost, disputes));
    settle(device, disputes, nodes, result.lost);
  }
  add_map_sums(device, super, result.old_files);
  return result;
}

}  // namespace varve::repair
