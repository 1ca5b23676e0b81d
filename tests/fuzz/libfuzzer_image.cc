// Entry of libFuzzer for whole images; VARVE_FUZZ_TARGET is the target's function. Inputs are mutated as lists of mutations, not as bytes.
#include <algorithm>
#include <cstring>

#include "fuzz/image.h"
#include "fuzz/structure/mutation.h"

namespace varve::fuzz {
namespace {

Input input_of(const std::uint8_t* data, std::size_t size) { return std::as_bytes(std::span(data, size)); }

// As many whole mutations as there is room for.
std::size_t put(Recipe recipe, std::uint8_t* out, std::size_t room) {
  if (room < 2) return 0;
  recipe.mutations.resize(std::min(recipe.mutations.size(), (room - 2) / kMutationBytes));
  const auto bytes = bytes_of(recipe);
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace
}  // namespace varve::fuzz

using namespace varve::fuzz;  // NOLINT(google-build-using-namespace): libFuzzer wants its functions outside

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed);
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other,
                                                 std::size_t other_size, std::uint8_t* out, std::size_t room, unsigned seed);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  VARVE_FUZZ_TARGET(input_of(data, size));
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed) {
  varve::SeededRandom random(seed);
  // Its own knows numbers that the code compares with.
  if (random.next() % 4 == 0) return LLVMFuzzerMutate(data, size, room);
  Recipe recipe = parse_recipe(input_of(data, size));
  for (std::uint64_t times = 1 + random.next() % 3; times > 0; --times) vary(recipe, random);
  return put(std::move(recipe), data, room);
}

std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other, std::size_t other_size,
                                      std::uint8_t* out, std::size_t room, unsigned seed) {
  varve::SeededRandom random(seed);
  Recipe recipe = parse_recipe(input_of(one, one_size));
  for (const Mutation& mutation : parse_recipe(input_of(other, other_size)).mutations)
    if (random.next() % 2 && recipe.mutations.size() < kMostMutations) recipe.mutations.push_back(mutation);
  return put(std::move(recipe), out, room);
}
