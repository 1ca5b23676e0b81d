// Placement plugins: which temperature group a block is written to. Each group has a head of its own, so blocks of one
// group share segments, and blocks that die at one time should share a group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cleaner/parameters.h"
#include "cleaner/segment_facts.h"
#include "format/layout.h"

namespace varve::cleaner {

inline constexpr std::uint8_t kNoGroup = 0xFF;
inline constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
inline constexpr std::size_t kMostLearned = 15;

// A block that a user writes; times in blocks of log clock.
struct WrittenBlock {
  std::uint64_t interval = kUnknown;  // since the version it replaces was written by a user; kUnknown: first, or not in memory
  double estimate = 0;                // of its interval between rewrites, this one included; 0: nothing is known
  std::uint8_t group = kNoGroup;      // where the version it replaces stands
  double previous_estimate = 0;       // that the version it replaces had
  std::uint64_t key = 0;              // of the block: the same each time it is written
  std::uint32_t blocks = 1;           // written at once, by keys that follow one another; they share all that is said here
  std::uint64_t clock = 0;            // log clock now
};

// A block that a cleaner moves.
struct MovedBlock {
  std::uint64_t age = 0;  // since a user wrote it
  double estimate = 0;    // as above
  std::uint8_t group = 0; // of the segment it leaves
};

// What a placement may want to know of the filesystem.
struct PlacementScale {
  std::uint64_t capacity = 0;  // blocks of all segments
  unsigned most_groups = format::kMaxGroups;  // that it should use, unless somebody asks for more
  std::uint32_t segment_blocks = 512;
};

// Thread-safe: place() is called by all threads at once, the others by the cleaner's thread.
class Placement {
 public:
  virtual ~Placement() = default;
  virtual std::string_view name() const = 0;
  virtual unsigned groups() const = 0;  // place() returns less
  virtual std::uint8_t place(const WrittenBlock& block) const = 0;
  virtual std::uint8_t place(const MovedBlock& block) const = 0;

  // All used segments, before every clean; then each victim.
  virtual void observe(std::span<const SegmentFacts>, std::uint64_t /*clock*/) {}
  virtual void collected(const SegmentFacts&) {}

  // What it has learned and the superblock keeps, at most kMostLearned numbers (SFS: the groups' centres).
  virtual std::vector<double> learned() const { return {}; }
  virtual void restore(std::span<const double>) {}
};

// What it says, but never a group that there is not: plugins may be wrong.
template <class Block>
std::uint8_t place(const Placement& placement, const Block& block) {
  return std::min<std::uint8_t>(placement.place(block), format::kMaxGroups - 1);
}

Result<std::unique_ptr<Placement>> make_placement(std::string_view spelling, const PlacementScale& scale);

}  // namespace varve::cleaner
