#include "fuzz/image.h"

#include "fuzz/structure/draft.h"
#include "fuzz/structure/trial.h"

namespace varve::fuzz {

namespace {

void suffer(const Recipe& recipe) {
  TrialCounts counts;
  suffer(*image_of(recipe), recipe.plan, counts);
}

}  // namespace

void vary_image(std::vector<std::byte>& input, Random& random) {
  Recipe recipe = parse_recipe(input);
  for (std::uint64_t times = 1 + random.next() % 4; times > 0; --times) vary(recipe, random);
  input = bytes_of(recipe);
}

void image(Input input) { suffer(parse_recipe(input)); }

void sfile(Input input) {
  Recipe recipe = parse_recipe(input);
  while (base_image(recipe.base).tables.empty()) ++recipe.base;
  recipe.plan |= kOnlyTables;
  suffer(recipe);
}

Seeds sfile_seeds() {
  Seeds seeds;
  SeededRandom random(2);
  for (std::uint8_t i = 0; i < 24; ++i) seeds.push_back(bytes_of({i, i, {random_mutation(random), random_mutation(random)}}));
  return seeds;
}

// Each base image as it is, then each act in one of them.
Seeds image_seeds() {
  Seeds seeds;
  SeededRandom random(1);
  for (std::uint8_t base = 0; base < kBaseImages; ++base) seeds.push_back(bytes_of({base, 0, {}}));
  for (unsigned act = 0; act < kActs; ++act) {
    Recipe recipe{static_cast<std::uint8_t>(act % kBaseImages), static_cast<std::uint8_t>(act), {random_mutation(random)}};
    recipe.mutations[0].act = static_cast<Act>(act);
    seeds.push_back(bytes_of(recipe));
  }
  return seeds;
}

}  // namespace varve::fuzz
