#include "daemon/group_watch.h"

#include <algorithm>

namespace varve::daemon {

namespace {
constexpr std::size_t kLeastShare = 16;  // of the bound: what is less is not worth following
// Inodes with changes stay in memory until a checkpoint has taken these. On a mount that nobody uses that is a minute after the last one.
constexpr unsigned kGiveBacks = 8;
constexpr unsigned kLooksOfLine = 6, kMostLines = 4 * kLooksOfLine;  // a line a minute, and some more at first
}  // namespace

// Compared with what the plan follows, so that many small changes come to a large one. The bound is half of the limit.
bool GroupWatch::is_news(const MemoryGroup& now) const {
  if (!now.is_known || now.limit == group_.limit) return false;
  const auto [less, more] = std::minmax(now.limit, group_.limit);
  return (more - less) / 2 >= plan_.bound / kLeastShare || (fits(plan_.bound, group_) && !fits(plan_.bound, now));
}

GroupWatch::Step GroupWatch::look(const MemoryGroup& now) {
  Step step;
  if (is_news(now)) {
    group_ = now;
    if (const auto next = followed(plan_, now, chosen_)) {
      if (next->bound < plan_.bound) give_backs_ = kGiveBacks;
      plan_ = *next;
      step.is_new = true;
    }
    is_untold_ = is_untold_ || step.is_new || !fits(plan_.bound, now);
  }
  if (give_backs_ > 0) {
    --give_backs_;
    step.gives_back = true;
  }
  if (lines_ > 0) --lines_;
  if (is_untold_ && lines_ < kMostLines) {
    is_untold_ = false;
    lines_ += kLooksOfLine;
    step.tells = true;
  }
  return step;
}

}  // namespace varve::daemon
