#include "cleaner/learned_state.h"

#include <bit>
#include <cmath>

namespace varve::cleaner {

namespace {

std::uint64_t hash_of(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001B3ULL;
  return hash;
}

}  // namespace

LearnedState keep_learned(const Placement& placement) {
  LearnedState state{};
  const std::vector<double> learned = placement.learned();
  if (learned.empty()) return state;
  state[0] = hash_of(placement.name());
  for (std::size_t i = 0; i < learned.size() && i < kMostLearned; ++i) state[i + 1] = std::bit_cast<std::uint64_t>(learned[i]);
  return state;
}

void restore_learned(Placement& placement, const LearnedState& state) {
  if (state[0] != hash_of(placement.name())) return;
  std::vector<double> learned;
  for (std::size_t i = 1; i < state.size(); ++i) {
    const double value = std::bit_cast<double>(state[i]);
    learned.push_back(std::isfinite(value) ? value : 0);  // it comes from a device
  }
  placement.restore(learned);
}

}  // namespace varve::cleaner
