// Names, parameters, shared objects.
#include <gmock/gmock.h>

#include "facts.h"
#include "support/places.h"

namespace varve::cleaner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::string refusal(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  if (result.ok()) return {};
  EXPECT_EQ(result.error().code(), Errc::invalid);
  return result.error().message();
}

TEST(Parameters, AreNamed) {
  const auto parsed = Parameters::parse("name:a=1.5:b=word");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->name(), "name");
  EXPECT_EQ(parsed->number("a", 9, 0, 10), 1.5);
  EXPECT_EQ(parsed->word("b", {"other", "word"}), "word");
  EXPECT_EQ(parsed->number("c", 9, 0, 10), 9);
  EXPECT_TRUE(parsed->check().ok());
}

TEST(Parameters, RefusesNonsense) {
  for (const char* spelling : {"", ":a=1", "name:a", "name:=1", "na=me", "name:"})
    EXPECT_FALSE(Parameters::parse(spelling).ok()) << spelling;
}

TEST(Registry, SaysWhatThereIs) {
  EXPECT_THAT(refusal(make_evaluation("fancy")), HasSubstr("greedy"));
  EXPECT_THAT(refusal(make_placement("fancy", {})), HasSubstr("sepbit"));
  EXPECT_THAT(refusal(VictimRule::make("fancy")), HasSubstr("hybrid"));
  EXPECT_THAT(refusal(VictimRule::make("greedy+fancy")), HasSubstr("segregation"));
}

TEST(Registry, RefusesParametersThatNobodyKnows) {
  EXPECT_THAT(refusal(make_evaluation("greedy:colour=blue")), HasSubstr("colour"));
  EXPECT_THAT(refusal(make_evaluation("cost-benefit:form=round")), HasSubstr("sqrt"));
  EXPECT_THAT(refusal(make_selection("d-choices:d=0")), HasSubstr("1000"));
  EXPECT_THAT(refusal(make_selection("d-choices:d=ten")), HasSubstr("number"));
  EXPECT_THAT(refusal(make_placement("sfs:groups=17", {1000, 16})), HasSubstr("16"));
}

TEST(Registry, HoldsTheBuiltInPoliciesByName) {
  for (const char* rule : {"timestamp", "timestamp:order=youngest", "greedy", "cost-benefit", "cost-hotness", "age-threshold",
                           "segregation", "hybrid", "reservoir", "mdc", "decline", "fifo", "d-choices"})
    EXPECT_TRUE(VictimRule::make(rule).ok()) << rule;
  for (const char* name : {"none", "split", "sfs", "dac", "sepbit", "age-chain", "interval", "learned"})
    EXPECT_TRUE(make_placement(name, {1000, 16}).ok()) << name;
}

TEST(Plugin, AddsItsPolicies) {
  const Status loaded = load_plugin(varve::test::example_plugin());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  // Segment 1 has more garbage, but is too young.
  EXPECT_THAT(choose("patient:wait=100", {segment(1, 10, 99), segment(2, 50, 100)}, {.wanted = 1}),
              ElementsAre(2));
  const auto made = make_placement("by-novelty", {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->place(MovedBlock{}), 2);
  EXPECT_EQ(load_plugin(varve::test::example_plugin()).error().code(), Errc::exists);
}

TEST(Plugin, SaysWhyItCannotBeLoaded) {
  EXPECT_EQ(load_plugin("/nowhere.so").error().code(), Errc::invalid);
  EXPECT_THAT(load_plugin("libm.so.6").error().message(), HasSubstr("no plugin"));
}

}  // namespace
}  // namespace varve::cleaner
