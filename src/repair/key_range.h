// Stretches of keys of the inode file: what a leaf stands for, what is lost.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "format/key.h"

namespace varve::repair {

struct KeyRange {  // lower ≤ key < upper
  format::Key lower, upper;

  bool contains(const format::Key& key) const { return key >= lower && key < upper; }
  bool empty() const { return !(lower < upper); }
};

inline KeyRange common(const KeyRange& a, const KeyRange& b) {
  return {std::max(a.lower, b.lower), std::min(a.upper, b.upper)};
}

// Disjoint ranges from which parts are taken.
class OpenRanges {
 public:
  void add(const KeyRange& range) {
    if (!range.empty()) ranges_[range.lower] = range.upper;
  }
  // What `wanted` has in common with the open ranges, which lose it.
  std::vector<KeyRange> take(const KeyRange& wanted) {
    std::vector<KeyRange> taken;
    auto at = ranges_.upper_bound(wanted.lower);
    if (at != ranges_.begin()) --at;
    while (at != ranges_.end() && at->first < wanted.upper) {
      const KeyRange open{at->first, at->second};
      const KeyRange both = common(open, wanted);
      ++at;
      if (both.empty()) continue;
      taken.push_back(both);
      ranges_.erase(open.lower);
      add({open.lower, both.lower});
      add({both.upper, open.upper});
    }
    return taken;
  }
  std::vector<KeyRange> left() const {
    std::vector<KeyRange> all;
    for (const auto& [lower, upper] : ranges_) all.push_back({lower, upper});
    return all;
  }

 private:
  std::map<format::Key, format::Key> ranges_;  // lower → upper
};

// The key that follows directly; kMaxKey stays.
inline format::Key after(format::Key key) {
  if (++key.offset != 0) return key;
  const auto kind = static_cast<std::uint8_t>(key.kind);
  if (kind < 0xFF) return {key.ino, static_cast<format::ItemKind>(kind + 1), 0};
  return key.ino.v + 1 != 0 ? format::Key{key.ino + 1, static_cast<format::ItemKind>(0), 0} : format::kMaxKey;
}

}  // namespace varve::repair
