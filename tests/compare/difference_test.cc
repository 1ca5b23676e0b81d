// Trees side by side agree with a walk over everything: after random operations, cleaning, and mounting again.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "changes/inode.h"
#include "compare/answer.h"
#include "compare/change_scan.h"
#include "compare/difference.h"
#include "compare/walked_state.h"
#include "format/record.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

using compare::Difference;
using compare::InodeChange;
using compare::Name;

std::vector<Serial> kept_serials(World& world) {
  std::vector<Serial> serials;
  for (const auto& one : world.fixture.fs().snapshots().snapshots) serials.push_back(Serial{one.serial});
  return serials;
}

bool is_in_run(const InodeChange& change, std::uint64_t block) {
  return std::ranges::any_of(change.runs, [block](const auto& run) { return run.first <= block && block < run.first + run.length; });
}

// Every block that is not the same must be in a run.
std::string check_blocks(const WalkedInode& was, const WalkedInode& is, const InodeChange& change) {
  std::set<std::uint64_t> blocks;
  for (const WalkedInode* side : {&was, &is})
    for (const auto& [block, crc] : side->blocks) blocks.insert(block);
  for (const std::uint64_t block : blocks) {
    const auto before = was.blocks.find(block), after = is.blocks.find(block);
    const bool same = before != was.blocks.end() && after != is.blocks.end() && before->second == after->second;
    if (!same && !is_in_run(change, block)) return fmt::format("block {} has changed", block);
  }
  for (std::size_t i = 1; i < change.runs.size(); ++i)
    if (change.runs[i].first < change.runs[i - 1].first + change.runs[i - 1].length) return "runs are not in order";
  return {};
}

std::string check_names(const WalkedInode& was, const WalkedInode& is, const InodeChange& change) {
  std::vector<Name> lost, gained;
  std::ranges::set_difference(was.names, is.names, std::back_inserter(lost));
  std::ranges::set_difference(is.names, was.names, std::back_inserter(gained));
  if (lost != change.lost) return fmt::format("{} names are gone, {} are said to be", lost.size(), change.lost.size());
  if (gained != change.gained) return fmt::format("{} names are new, {} are said to be", gained.size(), change.gained.size());
  return {};
}

// That nothing but an access time has changed: each change sets the time of changes.
bool is_untouched(const WalkedInode& was, const WalkedInode& is) { return was.attr.ctime == is.attr.ctime && was.names == is.names; }

std::string check_inode(const WalkedInode* was, const WalkedInode* is, const InodeChange& change) {
  const WalkedInode none;
  if (!was && change.attributes_differ && change.was_there()) return "was not there";
  if (!is && change.is_there()) return "is not there any more";
  const WalkedInode &before = was ? *was : none, &after = is ? *is : none;
  if (std::string wrong = check_names(before, after, change); !wrong.empty()) return wrong;
  if (!was || !is) return {};
  if (!change.was_there() || !change.is_there()) return "was and is there";
  if ((before.xattrs != after.xattrs) != change.xattrs) return "extended attributes";
  const auto facts = [](const fs::Attr& a) {
    return std::tuple(a.generation, a.mode, a.uid, a.gid, a.nlink, a.rdev, a.flags, a.size, a.atime, a.mtime, a.ctime, a.btime);
  };
  if (facts(before.attr) != facts(after.attr) && !change.attributes_differ) return "attributes have changed";
  if (is_untouched(before, after) && (change.content_differs() || !change.runs.empty() || change.target || change.entries))
    return "nothing has changed";
  return check_blocks(before, after, change);
}

std::string check_difference(World& world, Serial before, Serial after) {
  const auto found = Difference::find(test::asking(world.fixture.fs()), before, after);
  if (!found.ok()) return found.error().message();
  const auto was = walk(world.fixture, before == compare::kNewest ? Serial() : before), is = walk(world.fixture, after);
  if (!was.ok() || !is.ok()) return (was.ok() ? is : was).error().message();
  std::set<Ino> inodes;
  for (const auto* state : {&*was, &*is})
    for (const auto& [ino, inode] : state->inodes) inodes.insert(ino);
  for (const Ino ino : inodes) {
    const auto former = was->inodes.find(ino), present = is->inodes.find(ino);
    const auto change = found->inodes().find(ino);
    const std::string wrong = check_inode(former != was->inodes.end() ? &former->second : nullptr,
                                          present != is->inodes.end() ? &present->second : nullptr,
                                          change != found->inodes().end() ? change->second : InodeChange());
    if (!wrong.empty()) return fmt::format("{} to {}: inode {}: {}", before, after, ino, wrong);
  }
  return {};
}

std::string check_all_pairs(World& world) {
  if (const Status done = world.fixture.checkpoint(); !done.ok()) return done.error().message();
  const auto serials = kept_serials(world);
  std::vector<Serial> befores = serials;
  befores.push_back(compare::kNewest);
  for (const Serial before : befores)
    for (const Serial after : serials)
      if (std::string wrong = check_difference(world, before, after); !wrong.empty()) return wrong;
  return {};
}

TEST(Differences, are_none_between_a_snapshot_and_itself) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 100000 1; keep a; keep b"))));
  const auto serials = kept_serials(world);
  for (const Serial after : serials) {
    const auto found = Difference::find(test::asking(world.fixture.fs()), serials.front(), after);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_TRUE(found->inodes().empty());
  }
}

TEST(Differences, need_both_snapshots) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; keep a; keep b"))));
  const auto serials = kept_serials(world);
  ASSERT_TRUE(good(world.steps.run(step("drop a"))));
  const auto found = Difference::find(test::asking(world.fixture.fs()), serials[0], serials[1]);
  EXPECT_TRUE(found.fails_with(Errc::stale));
}

// However extents are cut: a block in the middle, holes, blocks that were allocated, and everything moved by a cleaner.
TEST(Differences, tell_which_blocks_of_a_file) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /f 0644; write /f 0 4000000 1; create /g 0644; write /g 0 400000 1; keep a; write /f 819200 4096 2; "
      "fallocate /f punch 1638400 8192; fallocate /f allocate 8192000 8192; keep b");
  const auto serials = kept_serials(world);
  const auto check = [&](const std::string& when) {
    const auto found = Difference::find(test::asking(world.fixture.fs()), serials[0], serials[1]);
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_EQ(found->inodes().size(), 1U) << when;
    const auto& runs = found->inodes().begin()->second.runs;
    ASSERT_EQ(runs.size(), 3U) << when;
    EXPECT_EQ(runs[0].first, 200U);
    EXPECT_EQ(runs[0].length, 1U);
    EXPECT_EQ(runs[1].first, 400U);
    EXPECT_EQ(runs[1].length, 2U);
    EXPECT_EQ(runs[1].is, compare::BlockState::hole);
    EXPECT_EQ(runs[2].first, 2000U);
    EXPECT_EQ(runs[2].was, compare::BlockState::hole);
    EXPECT_EQ(runs[2].is, compare::BlockState::unwritten);
  };
  check("at first");
  for (int i = 0; i < 12; ++i) {
    run(fmt::format("move {}; checkpoint; create /n{} 0644; write /n{} 0 300000 {}; clean copying", i, i, i, i));
    check(fmt::format("after {} rounds", i + 1));
  }
  ASSERT_TRUE(good(check_all_pairs(world)));
}

// What is the same costs nothing.
TEST(Differences, are_found_without_looking_at_the_rest) {
  WorldParameters parameters;
  parameters.bytes = 64u << 20;
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  constexpr int kFiles = 20'000;
  for (int i = 0; i < kFiles; ++i) ASSERT_TRUE(world.fixture.make(fmt::format("/file-with-a-name-{}", i), S_IFREG | 0644).ok());
  ASSERT_TRUE(world.fixture.snapshot({snapshots::SnapshotChange::Kind::create, "a", {}}).ok());
  const Ino changed = *world.fixture.resolve("/file-with-a-name-7777");
  ASSERT_TRUE(world.fixture.write(changed, 0, std::vector<std::byte>(10'000, std::byte{1})).ok());
  ASSERT_TRUE(world.fixture.snapshot({snapshots::SnapshotChange::Kind::create, "b", {}}).ok());
  const tree::TreeView& view = world.fixture.store().trees().own_view();
  ASSERT_GT(view.node_blocks(), 300U);
  const auto serials = kept_serials(world);
  fs::Operation operation(world.fixture.fs().operations(), {});
  compare::Progress progress;
  const auto found = fs::block_on(operation, [&] {
    return compare::answer(world.fixture.fs(), operation, {compare::Question::Kind::changes, serials[0], serials[1]}, progress);
  });
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_TRUE(found->ended);
  EXPECT_LT(progress.nodes, 20U);
  const auto records = compare::decode_records(found->bytes);
  ASSERT_TRUE(records.ok());
  for (const auto& record : *records) EXPECT_EQ(record.ino, changed);
}

// Also where answers end in the middle of a file or of a directory.
TEST(Differences, may_be_of_any_size) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 8000000 1; keep a"))));
  const Ino file = *world.fixture.resolve("/f");
  for (std::uint64_t block = 0; block < 1900; block += 2)
    ASSERT_TRUE(world.fixture.write(file, block * kBlockSize, std::vector<std::byte>(kBlockSize, std::byte{7})).ok());
  for (int i = 0; i < 1500; ++i) ASSERT_TRUE(world.fixture.make(fmt::format("/{}{}", std::string(100, 'n'), i), S_IFREG | 0644).ok());
  ASSERT_TRUE(world.fixture.snapshot({snapshots::SnapshotChange::Kind::create, "b", {}}).ok());
  unsigned answers = 0;
  const compare::Ask ask = test::asking(world.fixture.fs());
  const auto serials = kept_serials(world);
  const auto found = Difference::find(
      [&](const compare::Question& question) {
        ++answers;
        auto answer = ask(question);
        if (answer.ok()) {
          EXPECT_LE(answer->bytes.size(), compare::kMostAnswerBytes);
        }
        return answer;
      },
      serials[0], serials[1]);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_GT(answers, 10U);
  EXPECT_EQ(found->inodes().size(), 1500U + 2);  // and the file, and the root
  EXPECT_EQ(found->inodes().at(file).runs.size(), 950U);
  ASSERT_TRUE(good(check_all_pairs(world)));
}

ScriptProfile usual() {
  ScriptProfile profile;
  profile.names = 8;
  profile.names_weight = 50;
  profile.attribute_weight = 20;
  profile.file_bytes = 1u << 20;
  profile.total_bytes = 5u << 20;
  profile.move_weight = profile.seal_weight = profile.work_weight = profile.checkpoint_weight = 1;
  profile.read_weight = 2;
  return profile;
}

TEST(Differences, agree_with_a_walk_over_everything) {
  const Budget budget(0.6);
  std::uint64_t runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters;
    parameters.bytes = 48u << 20;
    parameters.image.seed = seed;
    World world(parameters);
    ASSERT_TRUE(good(world.start()));
    Dice dice(seed);
    ScriptGenerator generator(seed, usual());
    for (int part = 0; part < 6; ++part) {
      for (std::uint64_t i = dice.between(1, 120); i > 0; --i)
        ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      ASSERT_TRUE(good(world.steps.run(step(fmt::format("keep k{}", part))))) << "seed " << seed;
      if (dice.percent(50)) {
        ASSERT_TRUE(world.fixture.clean(dice.percent(50) ? "copying" : "compacting").ok()) << "seed " << seed;
      }
      if (dice.percent(20)) {
        ASSERT_TRUE(good(world.steps.run(step("remount")))) << "seed " << seed;
      }
    }
    ASSERT_TRUE(good(check_all_pairs(world))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace varve::test
