// Scripts: text and back, generators, enumeration, shrinking.
#include "support/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/ace.h"
#include "support/script_generator.h"
#include "support/shrink.h"

namespace varve::test {
namespace {

ScriptProfile everything() {
  ScriptProfile profile;
  profile.steps = 2000;
  profile.checkpoint_weight = 2;
  profile.remount_weight = 2;
  profile.read_weight = 5;
  profile.seal_weight = 2;
  profile.work_weight = 2;
  profile.clean_weight = 2;
  profile.strategies = {"copying"};
  return profile;
}

TEST(Script, prints_and_parses_back) {
  const Script steps = random_script(7, everything());
  for (const Step& step : steps) {
    auto again = parse_step(to_string(step));
    ASSERT_TRUE(again.ok()) << to_string(step);
    ASSERT_EQ(*again, step) << to_string(step);
  }
  EXPECT_EQ(script(to_string(steps, ";")), steps);
}

TEST(Script, refuses_what_it_cannot_read) {
  for (const char* text : {"creat /f 0644", "create /f", "create /f 0899", "rename /a /b sideways", "sync now",
                           "write /f 1 2 x", "fallocate /f 0 1 punch"}) {
    EXPECT_FALSE(parse_script(text).ok()) << text;
  }
  EXPECT_TRUE(parse_script("# nothing\n\n  sync ;; sync\n")->size() == 2);
}

TEST(Script, a_seed_means_one_script) {
  EXPECT_EQ(random_script(3, everything()), random_script(3, everything()));
  EXPECT_NE(random_script(3, everything()), random_script(4, everything()));
}

// A generator that mostly fails, or never reaches some kind of step, would test little.
TEST(Script, generated_steps_mostly_succeed_and_cover_every_verb) {
  const Script steps = random_script(11, everything());
  ModelFs model;
  std::set<Verb> succeeded;
  std::set<Errc> errors;
  std::size_t good = 0;
  for (const Step& step : steps) {
    auto result = apply(model, step, Timestamp{});
    if (!result.ok()) {
      errors.insert(result.error().code());
      continue;
    }
    ++good;
    succeeded.insert(step.verb);
  }
  EXPECT_GT(good, steps.size() * 6 / 10);
  EXPECT_LT(good, steps.size() * 97 / 100);
  EXPECT_EQ(succeeded.size(), static_cast<std::size_t>(Verb::work));  // all but pass
  EXPECT_GE(errors.size(), 6U);
}

TEST(Ace, enumerates_operations_that_work) {
  EXPECT_GE(ace_alphabet().size(), 50U);
  EXPECT_EQ(ace_sequences(1).size(), ace_alphabet().size());
  const auto pairs = ace_sequences(2);
  EXPECT_GT(pairs.size(), 4000U);
  for (const Script& sequence : pairs) {
    ASSERT_TRUE(is_barrier(sequence.back().verb));
    ASSERT_LE(sequence.size(), 4U);
  }
}

TEST(Shrink, leaves_only_what_is_needed) {
  const Script steps = random_script(5, everything());
  const auto fails = [](const Script& candidate) {
    const auto has = [&](Verb verb) {
      return std::any_of(candidate.begin(), candidate.end(), [verb](const Step& s) { return s.verb == verb; });
    };
    return has(Verb::mkdir) && has(Verb::checkpoint);
  };
  EXPECT_EQ(shrink(steps, fails, 4000).size(), 2U);
}

}  // namespace
}  // namespace varve::test
