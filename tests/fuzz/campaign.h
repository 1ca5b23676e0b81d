// Trials of whole images at full speed: processes that each take the next seeds until a number or a time is reached. A seed always gives
// the same image, as long as the corpus is the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/structure/mutation.h"
#include "fuzz/structure/trial.h"

namespace varve::fuzz {

struct CampaignOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t images = 0;    // 0: until the time is over
  double seconds = 0;          // 0: until the images are done
  unsigned jobs = 1;           // processes
  unsigned timeout = 60;       // seconds that one image may take
  unsigned most_failures = 1;  // after so many it ends
  Stage stage = Stage::all;
  std::string folder = ".";    // failing inputs go there
  std::vector<Recipe> corpus;  // half of all images begin with one of these
};

struct CampaignResult {
  TrialCounts counts;
  double seconds = 0, cpu_seconds = 0;
  std::uint64_t next_seed = 0;  // all before it are done
  unsigned failures = 0;
};

Recipe recipe_of(std::uint64_t seed, const std::vector<Recipe>& corpus);
CampaignResult run_campaign(const CampaignOptions& options);

// Does the recipe end a process of its own, or take longer than that many seconds? With `says` it may say why.
bool fails(const Recipe& recipe, unsigned timeout, bool says);
// Leaves out what is not needed for that.
Recipe shrink(Recipe recipe, unsigned timeout);

}  // namespace varve::fuzz
