// What is known of each segment, by pages that come when something in them changes: a filesystem may have grown to many more segments
// than it has ever used. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/invariant.h"

namespace varve::segments {

template <class Info>
class SegmentPages {
 public:
  explicit SegmentPages(std::uint64_t count) { resize(count); }

  std::uint64_t size() const { return count_; }
  // What goes is forgotten; what comes is as new.
  void resize(std::uint64_t count) {
    pages_.resize((count + kSegments - 1) / kSegments);
    if (const std::uint64_t kept = count % kSegments; count < count_ && kept && pages_.back())
      std::fill(pages_.back()->begin() + static_cast<std::ptrdiff_t>(kept), pages_.back()->end(), Info{});
    count_ = count;
  }

  const Info& operator[](std::uint64_t index) const {
    static const Info untouched{};
    MEMORY_INVARIANT(index < count_);
    const auto& page = pages_[index / kSegments];
    return page ? (*page)[index % kSegments] : untouched;
  }
  Info& change(std::uint64_t index) {
    MEMORY_INVARIANT(index < count_);
    auto& page = pages_[index / kSegments];
    if (!page) page = std::make_unique<Page>();
    return (*page)[index % kSegments];
  }

  // visit(index, info) for those that may have changed, in ascending order.
  template <class Visit>
  void for_each_changed(const Visit& visit) {
    for (std::uint64_t p = 0; p < pages_.size(); ++p)
      for (std::uint64_t i = 0; pages_[p] && i < kSegments && p * kSegments + i < count_; ++i) visit(p * kSegments + i, (*pages_[p])[i]);
  }
  template <class Visit>
  void for_each_changed(const Visit& visit) const {
    const_cast<SegmentPages*>(this)->for_each_changed([&](std::uint64_t index, const Info& info) { visit(index, info); });
  }

 private:
  static constexpr std::uint64_t kSegments = 1024;
  using Page = std::array<Info, kSegments>;

  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace varve::segments
