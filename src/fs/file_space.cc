#include "fs/file_space.h"

#include <algorithm>

namespace varve::fs {

namespace {

// Goes on to `to` from where the attempt before came to, and lets go what is behind. Would block, wanting nothing, where it is
// enough for one attempt.
Status count_some(Attempt& a, const changes::Inode& inode, changes::OwnedSoFar& so_far, std::uint64_t to) REQUIRES_SHARED(inode.mutex) {
  constexpr std::uint64_t kMostSteps = 1024;
  const std::uint64_t before = so_far.at;
  const Status counted = changes::count_owned_on(inode, a.view(), a.source(), so_far, to, kMostSteps);
  if (!counted.ok() && so_far.at > before) a.wait().pins.clear();  // of what is behind
  return counted;
}

constexpr std::uint64_t kWindowBlocks = 2048;  // few enough for the records of one operation, whatever is between them

struct Hole {
  std::uint64_t from, to;
};
using Holes = std::vector<Hole>;

// Asks for all the space, so that what cannot become whole is not begun. Not where others change the file meanwhile: windows
// ask for themselves.
Status look_for_space(Attempt& a, const changes::Inode& inode, operation::Allocation& all) REQUIRES_SHARED(inode.mutex) {
  if (inode.content_version() == all.version) {
    TRY(count_some(a, inode, all.so_far, all.to));
    const std::uint64_t missing = all.to - all.from - all.so_far.owned;
    if (missing) TRY(a.admit({.record_bytes = kFewRecordBytes, .new_blocks = missing, .places = kFewPlaces}));
  }
  all.counted = true;
  return {};
}

// Whether a long window is one hole, or none, as far as few steps tell: any number of changes can lie in it.
Result<bool> is_uniform(Attempt& a, const changes::Inode& inode, std::uint64_t from, std::uint64_t to, Holes& holes)
    REQUIRES_SHARED(inode.mutex) {
  constexpr std::uint64_t kMostSteps = 16;
  changes::OwnedSoFar so_far{from, 0};
  const Status counted = changes::count_owned_on(inode, a.view(), a.source(), so_far, to, kMostSteps);
  if (counted.fails_with(Errc::would_block) && a.wait().nodes.empty()) return false;
  TRY(counted);
  if (so_far.owned == 0) holes.push_back({from, to});
  return so_far.owned == 0 || so_far.owned == to - from;
}

Status find_holes(Attempt& a, const changes::Inode& inode, std::uint64_t from, std::uint64_t to, Holes& holes)
    REQUIRES_SHARED(inode.mutex) {
  constexpr unsigned kLeavesAhead = 8;
  std::vector<changes::MappedBlock> mapped(to - from);
  TRY(changes::resolve_blocks(inode, a.view(), a.source(), from, mapped, kLeavesAhead));
  const auto is_hole = [](const changes::MappedBlock& block) { return block.kind == changes::MappedBlock::Kind::hole; };
  for (auto at = mapped.begin(); (at = std::find_if(at, mapped.end(), is_hole)) != mapped.end();) {
    const auto end = std::find_if_not(at, mapped.end(), is_hole);
    holes.push_back({from + static_cast<std::uint64_t>(at - mapped.begin()), from + static_cast<std::uint64_t>(end - mapped.begin())});
    at = end;
  }
  return {};
}

}  // namespace

// What others write meanwhile into the part that has been counted only adds to it. What they clear there does not, so it is counted
// anew; but not for ever, and not all in one attempt, which in a cold file would begin anew with each node that is missing.
Result<std::uint64_t> count_in_steps(Attempt& a, const changes::Inode& inode, std::uint64_t from, std::uint64_t to) {
  operation::Count& count = a.wait().made_steps().count;
  if (count.from != from || count.to != to) count = {from, to, inode.cleared_version(), 0, {from, 0}};
  if (count.version != inode.cleared_version() && !count.given_up()) {
    count.version = inode.cleared_version();
    ++count.restarts;
    count.so_far = {count.given_up() ? to : from, 0};
  }
  TRY(count_some(a, inode, count.so_far, to));
  return count.so_far.owned;
}

Result<bool> allocate_some(Attempt& a, changes::Inode& inode, std::uint64_t from, std::uint64_t to) {
  operation::Allocation& all = a.wait().made_steps().allocation;
  if (all.from != from || all.to != to)
    all = {from, to, inode.content_version(), {from, 0}, to - from <= kWindowBlocks, from, to - from};
  if (!all.counted) {
    TRY(look_for_space(a, inode, all));
    return false;
  }
  const std::uint64_t begin = all.next;
  std::uint64_t end = std::min(to, begin + all.window);
  Holes holes;
  if (end - begin > kWindowBlocks && !TRY(is_uniform(a, inode, begin, end, holes))) end = begin + kWindowBlocks;
  if (end - begin <= kWindowBlocks) TRY(find_holes(a, inode, begin, end, holes));
  std::uint64_t missing = 0;
  for (const Hole& hole : holes) missing += hole.to - hole.from;
  TRY(a.admit({.record_bytes = 40 * holes.size() + 512, .new_blocks = missing, .places = 2 * holes.size() + 16}));
  for (const Hole& hole : holes)
    a.staging().clear(inode, hole.from, hole.to, tree::Cleared::unwritten, static_cast<std::int64_t>(hole.to - hole.from));
  all.next = end;
  const bool uniform = missing == 0 || missing == end - begin;
  all.window = uniform ? 2 * (end - begin) : kWindowBlocks;
  a.wait().pins.clear();  // of what is behind
  a.wait().nodes.clear();  // ahead, for a window that did not need them
  if (end < to) return false;
  all = {};
  return true;
}

}  // namespace varve::fs
