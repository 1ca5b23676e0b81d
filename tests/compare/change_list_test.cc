// What people are told of differences: kinds, paths, and what exactly has changed.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "compare/change_list.h"
#include "compare/paths.h"
#include "compare/walked_state.h"
#include "snapshots/snapshot_change.h"
#include "snapshots/snapshots.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

using compare::Change;
using Kind = compare::Change::Kind;

std::string text_of(const Change& change) {
  std::string text = fmt::format("{} {}", compare::name_of(change.kind), change.path);
  if (!change.former.empty()) text += " from " + change.former;
  for (const std::string& what : change.what) text += " +" + what;
  return text;
}

struct Snapshots {
  Serial first, last;
};

Snapshots ends(World& world) {
  const auto all = world.fixture.fs().snapshots().snapshots;
  return {Serial{all.front().serial}, Serial{all.back().serial}};
}

Result<std::vector<Change>> changes_between(World& world, Serial before, Serial after) {
  const compare::Ask ask = test::asking(world.fixture.fs());
  const auto difference = TRY(compare::Difference::find(ask, before, after));
  return compare::list_changes(ask, difference, before, after);
}

// Between the states before and after the second script.
std::vector<std::string> changes_by(const std::string& first, const std::string& second) {
  World world({});
  EXPECT_TRUE(good(world.start()));
  EXPECT_TRUE(good(run_script(world.steps, script(first + "; keep a; pass 1000; " + second + "; keep b"))));
  const auto [before, after] = ends(world);
  const auto found = changes_between(world, before, after);
  EXPECT_TRUE(found.ok()) << found.error().message();
  std::vector<std::string> texts;
  if (found.ok())
    for (const Change& change : *found) texts.push_back(text_of(change));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ChangeList, names_what_is_new_gone_and_renamed) {
  EXPECT_EQ(changes_by("mkdir /d 0755; create /d/f 0644; create /g 0644; mkdir /e 0755",
                       "unlink /g; create /d/h 0600; rename /d/f /e/f move"),
            (Texts{"created /d/h", "renamed /e/f from /d/f", "removed /g"}));
  EXPECT_EQ(changes_by("create /f 0644; create /g 0644", "rename /f /g exchange"), (Texts{"renamed /f from /g", "renamed /g from /f"}));
  EXPECT_EQ(changes_by("mkdir /d 0755; create /d/f 0644; mkdir /d/e 0700; create /d/e/g 0644", "rename /d /z move; write /z/e/g 0 100 1"),
            (Texts{"renamed /z from /d", "modified /z/e/g +content"}));
  EXPECT_EQ(changes_by("mkdir /d 0755; mkdir /d/e 0755; create /d/e/f 0644", "unlink /d/e/f; rmdir /d/e; rmdir /d"),
            (Texts{"removed /d", "removed /d/e", "removed /d/e/f"}));
}

TEST(ChangeList, knows_hard_links_from_files) {
  EXPECT_EQ(changes_by("create /f 0644", "link /f /g"), (Texts{"linked /g"}));
  EXPECT_EQ(changes_by("create /f 0644; link /f /g", "unlink /g"), (Texts{"unlinked /g"}));
  EXPECT_EQ(changes_by("create /x 0644", "create /f 0644; link /f /g"), (Texts{"created /f", "linked /g"}));
  EXPECT_EQ(changes_by("create /f 0644; link /f /g", "unlink /f; unlink /g"), (Texts{"removed /f", "removed /g"}));
}

TEST(ChangeList, says_what_has_changed_of_a_file) {
  EXPECT_EQ(changes_by("create /f 0644", "chmod /f 0600"), (Texts{"metadata /f +mode"}));
  EXPECT_EQ(changes_by("create /f 0644", "chown /f 7 8"), (Texts{"metadata /f +owner"}));
  EXPECT_EQ(changes_by("create /f 0644", "setxattr /f user.a 10 1 set"), (Texts{"metadata /f +xattrs"}));
  EXPECT_EQ(changes_by("create /f 0644", "utimes /f 5 6"), (Texts{"metadata /f +times"}));
  EXPECT_EQ(changes_by("create /f 0644", "write /f 0 10 1; chmod /f 0600"), (Texts{"modified /f +content +mode"}));
  EXPECT_EQ(changes_by("create /f 0644; write /f 0 10000 1", "truncate /f 9000"), (Texts{"modified /f +content"}));
  EXPECT_EQ(changes_by("mkdir /d 0755", "chmod /d 0700; create /d/f 0644"), (Texts{"metadata /d +mode", "created /d/f"}));
  EXPECT_EQ(changes_by("mkdir /d 0755", "create /d/f 0644; unlink /d/f"), (Texts{"metadata /d +times"}));
}

TEST(ChangeList, knows_a_file_that_was_written_anew) {
  EXPECT_EQ(changes_by("create /f 0644; write /f 0 100 1", "create /t 0644; write /t 0 100 2; rename /t /f move"), (Texts{"replaced /f"}));
  EXPECT_EQ(changes_by("mkdir /d 0755; create /d/f 0644", "unlink /d/f; create /d/f 0644; rename /d /e move"),
            (Texts{"renamed /e from /d", "replaced /e/f"}));
  EXPECT_EQ(changes_by("create /f 0644", "unlink /f; mkdir /f 0755"), (Texts{"created /f", "removed /f"}));
}

TEST(ChangeList, says_nothing_of_what_is_as_before) {
  EXPECT_EQ(changes_by("create /f 0644", "rename /f /g move; rename /g /f move"), (Texts{"metadata /f +times"}));
  EXPECT_EQ(changes_by("create /f 0644", "create /g 0644; checkpoint; unlink /g"), (Texts{"metadata / +times"}));
  EXPECT_EQ(changes_by("create /f 0644; write /f 0 300000 1", "checkpoint; move 0; move 1; move 2; checkpoint"), (Texts{}));
}

// Nothing leads from a file to its name: it is looked for, first where it probably is.
TEST(ChangeList, finds_names_near_where_files_were_made) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  for (int d = 0; d < 60; ++d) {
    ASSERT_TRUE(world.fixture.make(fmt::format("/d{}", d), S_IFDIR | 0755).ok());
    for (int f = 0; f < 20; ++f) ASSERT_TRUE(world.fixture.make(fmt::format("/d{}/f{}", d, f), S_IFREG | 0644).ok());
  }
  ASSERT_TRUE(world.fixture.snapshot({snapshots::SnapshotChange::Kind::create, "a", {}}).ok());
  const Serial snapshot = ends(world).first;
  const compare::Ask ask = test::asking(world.fixture.fs());
  unsigned asked = 0;
  const compare::Ask counting = [&](const compare::Question& question) { return ++asked, ask(question); };
  compare::Paths paths(counting, snapshot);
  const Ino one = *world.fixture.resolve("/d31/f7"), other = *world.fixture.resolve("/d58/f19");
  const auto found = paths.of_files({one, other, Ino{1'000'000}});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(one), "/d31/f7");
  EXPECT_EQ(found->at(other), "/d58/f19");
  asked = 0;
  EXPECT_EQ(compare::Paths(counting, snapshot).of_files({one, other})->at(other), "/d58/f19");
  EXPECT_LT(asked, 6U) << "of 60 directories";
}

// The newest state goes on: a directory may be removed between two questions. A snapshot is whole.
TEST(ChangeList, names_by_number_what_goes_from_the_newest_state_meanwhile) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  for (const char* path : {"/d", "/d/e"}) ASSERT_TRUE(world.fixture.make(path, S_IFDIR | 0755).ok());
  ASSERT_TRUE(world.fixture.make("/d/e/f", S_IFREG | 0644).ok());
  ASSERT_TRUE(world.fixture.snapshot({snapshots::SnapshotChange::Kind::create, "a", {}}).ok());
  const Ino directory = *world.fixture.resolve("/d/e"), file = *world.fixture.resolve("/d/e/f");
  const compare::Ask ask = test::asking(world.fixture.fs());
  const compare::Ask late = [&](const compare::Question& question) -> Result<compare::Answer> {
    if (question.kind == compare::Question::Kind::entries && question.from.ino == directory) return Errc::not_directory;
    return ask(question);
  };
  const auto name = compare::Paths(late, compare::kNewest).of({directory, "f"});
  ASSERT_TRUE(name.ok()) << name.error().message();
  EXPECT_EQ(*name, fmt::format("/inode {}/f", directory));
  const auto found = compare::Paths(late, compare::kNewest).of_files({file});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->empty());
  EXPECT_TRUE(compare::Paths(late, ends(world).first).of_files({file}).fails_with(Errc::not_directory));
}

// The list leads from what was there to what is there.
std::string check_list(World& world, Serial before, Serial after) {
  const auto list = changes_between(world, before, after);
  if (!list.ok()) return list.error().message();
  const WalkedState was = *walk(world.fixture, before), is = *walk(world.fixture, after);
  std::set<std::string> told;
  for (const Change& change : *list) {
    const std::string text = text_of(change);
    const bool goes = change.kind == Kind::removed || change.kind == Kind::unlinked;
    const auto& paths = goes ? was.paths : is.paths;
    if (!paths.contains(change.path) || paths.at(change.path) != change.ino) return text + ": it is not there";
    if (!change.former.empty() && (!was.paths.contains(change.former) || was.paths.at(change.former) != change.ino))
      return text + ": it was not there";
    if (change.kind == Kind::removed && is.inodes.contains(change.ino)) return text + ": but it is there";
    const bool is_new = change.kind == Kind::created || change.kind == Kind::replaced;
    if (is_new && was.inodes.contains(change.ino)) return text + ": but it was there";
    if (goes || change.kind == Kind::modified || change.kind == Kind::metadata) continue;
    told.insert(change.path);
  }
  // Every path that leads to another inode, or to none before, was told: by itself or by a directory above it.
  for (const auto& [path, ino] : is.paths) {
    const auto former = was.paths.find(path);
    if (former != was.paths.end() && former->second == ino) continue;
    const bool known = std::ranges::any_of(
        told, [&path = path](const std::string& one) { return path == one || path.starts_with(one + "/"); });
    if (!known) return path + ": nothing is said of it";
  }
  return {};
}

TEST(ChangeList, leads_from_one_state_to_the_other) {
  const Budget budget(0.2);
  std::uint64_t runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    World world({});
    ASSERT_TRUE(good(world.start()));
    Dice dice(seed);
    ScriptProfile profile;
    profile.names_weight = 70;
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 4; ++part) {
      for (std::uint64_t i = dice.between(1, 80); i > 0; --i)
        ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      ASSERT_TRUE(good(world.steps.run(step(fmt::format("keep k{}", part))))) << "seed " << seed;
    }
    const auto all = world.fixture.fs().snapshots().snapshots;
    for (const auto& before : all)
      for (const auto& after : all)
        ASSERT_TRUE(good(check_list(world, Serial{before.serial}, Serial{after.serial}))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace varve::test
