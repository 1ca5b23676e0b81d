// The owner of each block: collected from the trees, then compared with `.ffile` and `.mfile`.
//
// The owners themselves would take 24 bytes per block. Instead each leaf of `.mfile` (168 blocks) has the sum of the
// hashes of its expected entries; where sums differ, a second walk with a recorder finds the blocks.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "format/item.h"
#include "format/map_record.h"
#include "format/superblock.h"

namespace varve::check {

enum class Claim : std::uint8_t { good, outside, twice, shared };

std::uint64_t entry_hash(BlockAddr address, const format::ReverseEntry& entry);
std::string describe(const format::ReverseEntry& entry);

class Claims {
 public:
  struct Segment {
    std::uint64_t clock_sum = 0;
    std::uint64_t rate_sum = 0;
    std::uint64_t held_rate = 0;  // part of it: of blocks that only snapshots have, which need not be counted
    std::uint32_t live = 0;
    std::uint32_t youngest = 0;
  };
  using Recorder = std::function<void(BlockAddr, const format::ReverseEntry&)>;

  explicit Claims(const format::Superblock& super);

  Claim claim(BlockAddr address, const format::ReverseEntry& owner);
  Claim claim_node(BlockAddr address, format::TreeId tree, unsigned level, bool may_be_shared = false);
  // Of a tree that shares what it has with others. `shared`: it had been claimed, as the same. `twice`: as something else, which stays.
  // Needs keep_tags() before the first claim.
  Claim claim_shared(BlockAddr address, const format::ReverseEntry& owner);
  // What is listed as dead of a deleted snapshot: whose it was nobody says any more.
  Claim claim_listed(BlockAddr address, bool of_node, std::uint32_t clock, std::uint8_t estimate);
  void keep_tags() { tags_.resize(end_.v); }  // two bytes for each block
  bool is_nameless(BlockAddr address) const { return nameless_.contains(address.v); }
  bool is_claimed(BlockAddr address) const { return bits_[address.v / 64] >> (address.v % 64) & 1; }
  bool is_inside(BlockAddr address) const { return address >= first_ && address < end_; }

  const Segment& segment(std::uint64_t index) const { return segments_[index]; }
  std::uint64_t live() const { return live_; }
  std::uint64_t data() const { return data_; }
  const std::vector<std::uint64_t>& hash_sums() const { return hash_sums_; }  // by leaf of .mfile
  const std::unordered_set<std::uint64_t>& conflicts() const { return conflicts_; }  // addresses, the first 1000

  void set_recorder(Recorder recorder) { recorder_ = std::move(recorder); }  // hears every claim

 private:
  enum class By : std::uint8_t { newest, snapshot };
  Claim claim_for(By by, BlockAddr address, const format::ReverseEntry& owner);
  void enter(By by, BlockAddr address, bool of_file, std::uint32_t clock, std::uint8_t estimate);
  std::uint32_t segment_blocks_;
  BlockAddr first_, end_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint16_t> tags_;  // of owners
  std::unordered_set<std::uint64_t> nameless_;
  std::vector<Segment> segments_;
  std::vector<std::uint64_t> hash_sums_;
  std::unordered_set<std::uint64_t> conflicts_;
  std::uint64_t live_ = 0;
  std::uint64_t data_ = 0;
  Recorder recorder_;
};

// The entry that `.mfile` must have for block `index` of an extent that starts at file block `first`.
format::ReverseEntry entry_of(Ino ino, std::uint64_t first, const format::Extent& extent, std::uint64_t index);

}  // namespace varve::check
