// Choosing what to clean. Policies are pure functions of what is known about segments: daemon, tools, tests and benches
// share them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace varve::cleaner {

struct SegmentSummary {
  SegmentId id;
  std::uint32_t live = 0;      // blocks
  std::uint32_t blocks = 0;    // in all
  std::uint64_t age = 0;       // log clock since its youngest live block was written, in blocks
  std::uint8_t group = 0;
  bool holds_nodes = false;    // nodes and nothing else; the other segments hold file blocks

  double utilisation() const { return blocks ? static_cast<double>(live) / blocks : 1.0; }
};

class VictimPolicy {
 public:
  virtual ~VictimPolicy() = default;
  virtual std::string_view name() const = 0;
  // Higher is better. Segments without anything live never get here.
  virtual double score(const SegmentSummary& segment) const = 0;
};

// "greedy": most garbage first. "cost-benefit": (1-u)·age/(1+u) (Rosenblum, Ousterhout 1992). Null for other names.
std::unique_ptr<VictimPolicy> make_victim_policy(std::string_view name);

struct Selection {
  std::vector<SegmentId> victims;  // best first
  std::uint64_t data = 0;          // file blocks to move
  std::uint64_t nodes = 0;         // tree nodes to write anew
  std::uint64_t gain = 0;          // blocks freed beyond what is moved
  std::uint64_t live() const { return data + nodes; }
};
// The best victims that `fits` lets come together (it judges the selection with one more), until they free `wanted`
// blocks; segments above `max_utilisation` gain too little to be worth their metadata.
Selection select_victims(const VictimPolicy& policy, std::span<const SegmentSummary> segments, std::uint64_t wanted,
                         double max_utilisation, const std::function<bool(const Selection&)>& fits);

}  // namespace varve::cleaner
