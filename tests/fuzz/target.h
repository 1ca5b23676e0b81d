// Fuzz targets: functions that take any bytes. They must not crash, hang, or eat memory, and hold what they promise.
//
// Built twice: each as a libFuzzer program (clang, VARVE_FUZZ), and all into a normal test that replays the corpus and
// seeded mutations of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace varve::fuzz {

using Input = std::span<const std::byte>;
using Seeds = std::vector<std::vector<std::byte>>;

struct Target {
  const char* name;  // folder of its corpus
  void (*run)(Input);
  Seeds (*seeds)();        // where the corpus began
  unsigned mutations;      // how many a normal test run tries
  void (*mutate)(std::vector<std::byte>&, Random&) = nullptr;  // null: bytes
};
std::span<const Target> targets();

// Ends the process: what must hold does not.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what.c_str());
  std::abort();
}

// Takes values off the front of an input; zeros when it is used up.
class Source {
 public:
  explicit Source(Input input) : rest_(input) {}
  bool empty() const { return rest_.empty(); }
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes && !rest_.empty(); ++i, rest_ = rest_.subspan(1))
      value |= std::to_integer<std::uint64_t>(rest_[0]) << (8 * i);
    return value;
  }
  Input bytes(std::size_t most) {
    const Input taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  Input rest_;
};

}  // namespace varve::fuzz
