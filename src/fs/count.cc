#include "fs/count.h"

namespace varve::fs {

Status count_some(Attempt& a, const store::Inode& inode, store::OwnedSoFar& so_far, std::uint64_t to) {
  constexpr std::uint64_t kMostSteps = 1024;
  const std::uint64_t before = so_far.at;
  const Status counted = store::count_owned_on(inode, a.view(), a.source(), so_far, to, kMostSteps);
  if (!counted.ok() && so_far.at > before) a.wait().pins.clear();  // of what is behind
  return counted;
}

// What others write meanwhile into the part that has been counted only adds to it. What they clear there does not, so it is counted
// anew; but not for ever, and not all in one attempt, which in a cold file would begin anew with each node that is missing.
Result<std::uint64_t> count_in_steps(Attempt& a, const store::Inode& inode, std::uint64_t from, std::uint64_t to) {
  Count& count = a.wait().made_steps().count;
  if (count.from != from || count.to != to) count = {from, to, inode.cleared_version(), 0, {from, 0}};
  if (count.version != inode.cleared_version() && !count.given_up()) {
    count.version = inode.cleared_version();
    ++count.restarts;
    count.so_far = {count.given_up() ? to : from, 0};
  }
  TRY(count_some(a, inode, count.so_far, to));
  return count.so_far.owned;
}

}  // namespace varve::fs
