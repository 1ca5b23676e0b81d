// Ranges of file blocks that were cleared: holes, or unwritten (allocated, reading as zeros). Newer ranges replace older
// ones where they meet.
#pragma once
#include "base/invariant.h"

#include <cstdint>
#include <map>
#include <optional>

namespace varve::tree {

enum class Cleared : std::uint8_t { hole, unwritten };

struct ClearedRange {
  std::uint64_t from = 0, to = 0;  // [from, to)
  Cleared kind = Cleared::hole;
};

// Not thread-safe.
class RangeMap {
 public:
  void set(std::uint64_t from, std::uint64_t to, Cleared kind) {
    if (from >= to) return;
    split(from);
    split(to);
    ranges_.erase(ranges_.lower_bound(from), ranges_.lower_bound(to));
    ranges_[from] = {to, kind};
    join(from);
  }
  // The range around `block`, or nothing.
  std::optional<ClearedRange> find(std::uint64_t block) const {
    auto after = ranges_.upper_bound(block);
    if (after == ranges_.begin()) return std::nullopt;
    --after;
    if (block >= after->second.to) return std::nullopt;
    return ClearedRange{after->first, after->second.to, after->second.kind};
  }
  // The first range that ends after `block`.
  std::optional<ClearedRange> first_after(std::uint64_t block) const {
    if (auto here = find(block)) return here;
    auto after = ranges_.lower_bound(block);
    if (after == ranges_.end()) return std::nullopt;
    return ClearedRange{after->first, after->second.to, after->second.kind};
  }
  bool empty() const { return ranges_.empty(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  struct Tail {
    std::uint64_t to;
    Cleared kind;
  };
  void split(std::uint64_t at) {
    auto here = find(at);
    if (!here || here->from == at) return;
    ranges_[here->from].to = at;
    ranges_[at] = {here->to, here->kind};
  }
  void join(std::uint64_t from) {
    auto here = ranges_.find(from);
    MEMORY_INVARIANT(here != ranges_.end());
    INVARIANT(here->second.to > from);
    if (here != ranges_.begin()) {
      auto before = std::prev(here);
      if (before->second.to == from && before->second.kind == here->second.kind) {
        before->second.to = here->second.to;
        ranges_.erase(here);
        here = before;
      }
    }
    auto after = std::next(here);
    if (after != ranges_.end() && after->first == here->second.to && after->second.kind == here->second.kind) {
      here->second.to = after->second.to;
      ranges_.erase(after);
    }
  }
  std::map<std::uint64_t, Tail> ranges_;
};

}  // namespace varve::tree
