#include "fuse/operations/lost_writes.h"

#include <algorithm>
#include <iterator>

namespace varve::fuse {

namespace {
constexpr std::size_t kMostRanges = 256;    // of a file; more are joined, so that nothing missing is forgotten
constexpr std::size_t kMostThreads = 1024;  // of a file; each of more has one write accepted in vain
}  // namespace

void LostWrites::add(File& file, std::uint64_t from, std::uint64_t end) {
  auto at = file.missing.upper_bound(from);
  if (at != file.missing.begin() && std::prev(at)->second >= from) --at;
  while (at != file.missing.end() && at->first <= end) {
    from = std::min(from, at->first);
    end = std::max(end, at->second);
    at = file.missing.erase(at);
  }
  const auto added = file.missing.emplace(from, end).first;
  if (file.missing.size() <= kMostRanges) return;
  const auto first = added == file.missing.begin() ? added : std::prev(added);
  const auto second = std::next(first);
  first->second = second->second;
  file.missing.erase(second);
}

void LostWrites::remove(File& file, std::uint64_t from, std::uint64_t end) {
  auto at = file.missing.upper_bound(from);
  if (at != file.missing.begin() && std::prev(at)->second > from) --at;
  while (at != file.missing.end() && at->first < end) {
    const auto [begin, last] = *at;
    at = file.missing.erase(at);
    if (begin < from) file.missing.emplace(begin, from);
    if (last > end) file.missing.emplace(end, last);
  }
}

bool LostWrites::loses(Errc why) {
  switch (why) {
    case Errc::no_space:
    case Errc::host_full:
    case Errc::read_only:
    case Errc::io:
    case Errc::corrupt:
    case Errc::needs_fsck:
    case Errc::shut_down:
      return true;
    default:
      return false;
  }
}

void LostWrites::refused(Ino ino, std::uint64_t from, std::uint64_t end, Errc why) {
  const Lock lock(mutex_);
  File& file = files_[ino];
  count();
  add(file, from, end);
  ++file.refusals;
  file.why = why;
}

void LostWrites::settled(Ino ino, std::uint64_t from, std::uint64_t end) {
  if (!any() || from >= end) return;
  const Lock lock(mutex_);
  const auto found = files_.find(ino);
  if (found == files_.end()) return;
  remove(found->second, from, end);
  if (found->second.missing.empty()) files_.erase(found);
  count();
}

void LostWrites::forget(Ino ino) {
  if (!any()) return;
  const Lock lock(mutex_);
  files_.erase(ino);
  count();
}

std::optional<Errc> LostWrites::why_lacking(Ino ino) const {
  if (!any()) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = files_.find(ino);
  return found == files_.end() ? std::nullopt : std::optional(found->second.why);
}

std::vector<Ino> LostWrites::files(std::size_t most) const {
  const Lock lock(mutex_);
  std::vector<Ino> some;
  for (auto at = files_.begin(); at != files_.end() && some.size() < most; ++at) some.push_back(at->first);
  return some;
}

void LostWrites::writes(Ino ino, std::uint32_t thread) {
  if (!any()) return;
  const Lock lock(mutex_);
  const auto found = files_.find(ino);
  if (found == files_.end()) return;
  auto& told = found->second.told;
  if (told.size() >= kMostThreads) told.clear();
  told.try_emplace(thread, 0);
}

std::optional<Errc> LostWrites::take_news(Ino ino, std::uint32_t thread) {
  if (!any()) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = files_.find(ino);
  if (found == files_.end()) return std::nullopt;
  const auto known = found->second.told.find(thread);
  if (known == found->second.told.end() || known->second == found->second.refusals) return std::nullopt;
  known->second = found->second.refusals;
  return found->second.why;
}

}  // namespace varve::fuse
