// Placement plugins: which temperature group a block is written to. Each group has a head of its own, so blocks of one
// group share segments, and blocks that die at one time should share a group.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cleaner/parameters.h"
#include "cleaner/segment_facts.h"

namespace varve::cleaner {

inline constexpr std::uint8_t kNoGroup = 0xFF;
inline constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

// A block that a user writes; times in blocks of log clock.
struct WrittenBlock {
  std::uint64_t interval = kUnknown;  // since the version it replaces was written by a user; kUnknown: first, or not in memory
  double estimate = 0;                // of its interval between rewrites, this one included; 0: nothing is known
  std::uint8_t group = kNoGroup;      // where the version it replaces stands
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
  unsigned most_groups = 16;
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
  virtual void observe(std::span<const SegmentFacts>) {}
  virtual void collected(const SegmentFacts&) {}

  // What it has learned and the superblock keeps, at most 16 numbers (SFS: the groups' centres).
  virtual std::vector<double> learned() const { return {}; }
  virtual void restore(std::span<const double>) {}
};

Result<std::unique_ptr<Placement>> make_placement(std::string_view spelling, const PlacementScale& scale);

}  // namespace varve::cleaner
