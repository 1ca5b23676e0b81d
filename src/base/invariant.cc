#include "base/invariant.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"

namespace varve {

namespace {

struct Watches {
  Mutex mutex{LockRank::any};
  std::vector<const std::function<void(const std::string&)>*> all GUARDED_BY(mutex);
};

Watches& watches() {
  static Watches one;
  return one;
}

std::string text_of(const char* condition, const char* path, int line) {
  std::string_view file = path;
  for (const std::string_view root : {"src/", "tests/"})
    if (const auto at = file.rfind(root); at != std::string_view::npos) file.remove_prefix(at);
  return fmt::format("a fault in the program was found in time: \"{}\" does not hold ({}:{})", condition, file, line);
}

}  // namespace

InvariantWatch::InvariantWatch(std::function<void(const std::string&)> broken) : broken_(std::move(broken)) {
  const Lock lock(watches().mutex);
  watches().all.push_back(&broken_);
}

InvariantWatch::~InvariantWatch() {
  const Lock lock(watches().mutex);
  std::erase(watches().all, &broken_);
}

void report_broken(const char* condition, const char* path, int line) noexcept {
  {
    const Lock lock(watches().mutex);
    if (!watches().all.empty()) {
      const std::string what = text_of(condition, path, line);
      for (const auto* broken : watches().all) (*broken)(what);
      return;
    }
  }
  abort_broken(condition, path, line);
}

void abort_broken(const char* condition, const char* path, int line) noexcept {
  fmt::print(stderr, "{}\n", text_of(condition, path, line));
  std::fflush(stderr);
  std::abort();
}

}  // namespace varve
