// The scenarios of the design review that are about the order of operations on the log, each swept through every cut.
// A test is named after its hazard; what it guards is in docs/reliability.md under the same number.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "segments/counters.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"

namespace varve::test {
namespace {

std::string repeated(int count, const char* format) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format(fmt::runtime(format), i) + "; ";
  return text;
}

CrashSetup setup_of(std::uint64_t bytes, std::uint64_t completion_seed) {
  CrashSetup setup;
  setup.bytes = bytes;
  setup.completion_seed = completion_seed;
  return setup;
}

// Under several orders of completion: a hazard may need just one of them.
std::string sweep_orders(std::uint64_t bytes, const std::string& start, const std::string& script,
                         SweepOptions options = exhaustive()) {
  for (std::uint64_t order = 0; order < 4; ++order) {
    options.plan.seed = order + 1;
    const std::string failure = sweep_all(setup_of(bytes, order), start, script, options);
    if (!failure.empty()) return failure;
  }
  return "";
}

constexpr std::uint64_t kSmall = 8u << 20;
constexpr std::uint64_t kBig = 32u << 20;

// A small write waits in memory while a large one fills runs and reaches the device first.
TEST(Hazards, H1_a_deferred_write_does_not_tear_the_prefix) {
  EXPECT_TRUE(good(sweep_orders(kBig, "create /f 0644; create /g 0644; create /h 0644",
                         "write /f 0 4096 1; write /g 0 1048576 2; write /f 4096 4096 3; write /g 1048576 1048576 4;"
                         "write /h 0 100 5; write /g 2097152 1048576 6; seal; write /f 0 4096 7; fsync /f")));
}

// v1 of a block is absorbed by v2 in memory while an operation between them is not.
TEST(Hazards, H2_absorbed_writes_do_not_let_later_ones_overtake) {
  EXPECT_TRUE(good(sweep_orders(kSmall, "create /b 0644; write /b 0 8192 1",
                         "write /b 0 4096 2; create /x 0644; write /b 0 4096 3; chmod /b 0600; utimes /b 5 6;"
                         "setxattr /b user.a 10 1 set; create /y 0644; setxattr /b user.a 10 2 set; seal;"
                         "write /b 0 4096 4; unlink /x; write /b 0 4096 5; fsync /b")));
}

// A rename over a file changes two directories and three inodes; a large write fills more than a chunk.
TEST(Hazards, H3_an_operation_is_whole_or_absent) {
  EXPECT_TRUE(good(sweep_orders(kBig,
                         "mkdir /a 0755; mkdir /b 0755; create /a/f 0644; write /a/f 0 70000 1; create /b/f 0644;"
                         "write /b/f 0 50000 2; mkdir /a/d 0755; mkdir /b/d 0755",
                         "rename /a/f /b/f move; seal; write /b/f 1000 1048000 3; seal; rename /a/d /b/d move; seal;"
                         "rename /a /b exchange; link /a/f /b/g; seal; rename /a/f /b/h noreplace; fsync /")));
}

// More records than one chunk takes, with operations that straddle its end.
TEST(Hazards, H3_many_operations_over_many_chunks) {
  SweepOptions options = exhaustive();
  options.plan.max_positions = 25;
  options.plan.seeds = 2;
  const std::string name(200, 'n');
  std::string script;
  for (int i = 0; i < 600; ++i) {
    script += fmt::format("create /d/{}{} 0644; ", name, i);
    if (i % 3 == 0) script += fmt::format("rename /d/{0}{1} /d/r{0}{2} move; ", name, i, i / 2);
  }
  EXPECT_TRUE(good(sweep_orders(kSmall, "mkdir /d 0755", script + "fsync /d", options)));
}

// A truncate waits with records while the block written after it is placed; and its kin.
TEST(Hazards, H5_order_inside_one_interval_is_kept) {
  EXPECT_TRUE(good(sweep_orders(kBig,
                         "create /f 0644; write /f 0 65536 1; create /g 0644; write /g 0 65536 2; create /k 0644",
                         "truncate /f 0; write /f 0 4096 3; seal; write /f 0 262144 4; fallocate /f punch 4096 8192;"
                         "write /f 8192 4096 5; seal; write /g 0 131072 6; unlink /g; create /g 0644; write /g 0 10 7;"
                         "seal; write /k 0 300000 8; rename /k /f move; write /f 0 4096 9; truncate /f 100; "
                         "truncate /f 5000; seal; rename /f /g exchange; write /f 4096 4096 10; fsync /f")));
}

// A large write is on its way when a small one is synced: it must be waited for, and flushed after it has completed.
TEST(Hazards, H6_fsync_waits_for_everything_its_chunk_follows) {
  for (std::uint64_t order = 1; order <= 12; ++order) {
    SweepOptions options = exhaustive();
    options.plan.seeds = 2;
    options.plan.seed = order;
    ASSERT_TRUE(good(sweep_all(setup_of(kBig, order), "create /big 0644; create /small 0644",
                        "write /big 0 1048576 1; write /big 1048576 1048576 2; seal; write /small 0 100 3;"
                        "fsync /small; write /big 0 524288 4; write /small 0 100 5; fsync /small",
                        options)))
        << "order " << order;
  }
}

// A header of many blocks, torn at every sector by seed.
TEST(Hazards, H10_a_torn_header_ends_the_log) {
  SweepOptions options = exhaustive();
  options.plan.seeds = 40;
  options.check_every = 50;
  options.go_on_every = 50;
  options.second_every = 50;
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 0), "mkdir /d 0755",
                      repeated(150, "create /d/name-of-some-length-{} 0644") + "fsync /d; create /x 0644; fsync /x",
                      options)));
}

// A chunk is lost, its successors are on the medium; the next mount writes the same LSN again and crashes too.
TEST(Hazards, H16_a_discarded_tail_does_not_come_back) {
  const Script first = script(
      "create /a 0644; seal; create /b 0644; seal; write /a 0 4096 1; seal; create /c 0644; seal; write /b 0 4096 2;"
      "seal; unlink /a; seal; create /d 0644; seal");
  const Script second = script(
      "create /p 0644; seal; create /q 0644; seal; write /p 0 4096 3; fsync /p; create /r 0644; seal");
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const CrashSetup setup = setup_of(kSmall, seed % 2 ? seed : 0);
    Recording one(setup, prepare(setup, {}), first);
    ASSERT_TRUE(good(one.failed()));
    DurableState state;
    const Cut cut{one.device().position() - seed % 4, seed % 3 ? CutPolicy::subset : CutPolicy::scramble, seed};
    ASSERT_TRUE(good(verify(one, cut, {}, &state))) << to_string(cut);
    CrashSetup again = setup;
    again.seed = seed + 1000;
    ASSERT_TRUE(good(sweep(again, state, first, second, exhaustive()))) << "after a crash at " << to_string(cut);
  }
}

// The same without anything to replay: the mount between the crashes changes nothing on the device.
TEST(Hazards, H17_an_epoch_is_never_used_twice) {
  const Script lost = script("create /a 0644; seal; create /b 0644; seal; create /c 0644; seal");
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CrashSetup setup = setup_of(kSmall, seed);
    DurableState state = prepare(setup, {});
    for (int round = 0; round < 4; ++round) {
      setup.seed = seed + static_cast<std::uint64_t>(round) * 100;
      Recording recording(setup, state, lost);
      ASSERT_TRUE(good(recording.failed()));
      const Cut cut{recording.device().position(), CutPolicy::subset, seed + static_cast<std::uint64_t>(round)};
      DurableState next;
      ASSERT_TRUE(good(verify(recording, cut, {}, &next))) << "seed " << seed << " round " << round;
      if (next.model.inode_count() > 1) break;  // the names exist now: the script would fail
      state = std::move(next);
    }
  }
}

// What is pending when a checkpoint freezes belongs to it; what follows must not be applied to it twice.
TEST(Hazards, H19_a_checkpoint_holds_exactly_its_prefix) {
  EXPECT_TRUE(good(sweep_orders(kBig, "create /f 0644; write /f 0 65536 1; create /g 0644",
                         "write /g 0 300000 2; truncate /f 4096; write /g 0 4096 3; checkpoint; truncate /f 0;"
                         "write /f 0 4096 4; seal; write /f 0 4096 5; truncate /g 0; checkpoint; write /g 0 10 6;"
                         "fsync /g; truncate /f 100; seal")));
}

// Checkpoints that shift the trees' shape: leaves split and merge between two of them.
TEST(Hazards, H20_trees_of_different_checkpoints_do_not_mix) {
  SweepOptions options = exhaustive();
  options.plan.max_positions = 60;
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 3), repeated(200, "create /file-{} 0644"),
                      repeated(120, "unlink /file-{}") + "checkpoint;" + repeated(150, "create /new-file-{} 0644") +
                          "fsync /;" + repeated(60, "rename /new-file-{0} /file-{0} move") + "checkpoint; fsync /",
                      options)));
}

// The same blocks are replaced in one checkpoint after another, some of them cut off in the middle.
TEST(Hazards, H21_nodes_replaced_twice_are_freed_once) {
  std::string script;
  for (int i = 0; i < 6; ++i) {
    script += fmt::format("write /f {} 8192 {}; create /n{} 0644; checkpoint; setxattr /f user.a 100 {} set; ",
                          i * 4096, 10 + i, i, i + 1);
  }
  const std::string start = "create /f 0644; write /f 0 65536 1";
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 5), start, script + "checkpoint", exhaustive())));
}

// A file of a thousand extents disappears, is cut, is punched: all at once for every reader.
TEST(Hazards, H24_a_huge_truncate_is_atomic) {
  std::string start = "create /f 0644; create /g 0644; ";
  for (int i = 0; i < 700; ++i) {
    start += fmt::format("write /f {0} 4096 {1}; write /g {0} 4096 {2}; ", i * 8192, 1 + i, 5000 + i);
  }
  SweepOptions options = exhaustive();
  options.plan.max_positions = 60;
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_orders(kBig, start,
                         "truncate /f 5000; seal; write /f 40000 100 1; seal; unlink /g; seal; create /g 0644; seal;"
                         "fallocate /f punch 0 40000; fsync /g",
                         options)));
}

// Bytes cut off in the middle of a block never come back when the file grows again.
TEST(Hazards, H25_the_tail_of_a_cut_block_stays_zero) {
  EXPECT_TRUE(good(sweep_orders(kSmall, "create /f 0644; write /f 0 20000 1",
                         "truncate /f 100; seal; truncate /f 4096; seal; truncate /f 9000; seal;"
                         "write /f 8990 5 2; seal; truncate /f 8993; truncate /f 12288; seal;"
                         "fallocate /f punch 50 20; seal; truncate /f 60; write /f 4000 10 3; fsync /f")));
}

// Recovery allocates before it is finished, and is cut off again and again: what it has to replay must stay.
TEST(Hazards, H28_recovery_does_not_overwrite_what_it_replays) {
  SweepOptions options = exhaustive();
  options.plan.max_positions = 20;
  options.second_every = 1;
  options.second_cuts = 10;
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 7), "create /f 0644; write /f 0 400000 1",
                      "write /f 0 200000 2; unlink /f; create /g 0644; write /g 0 300000 3; fsync /g;"
                      "write /g 0 4096 4; seal",
                      options)));
}

// Discards of freed segments against writes that take them again.
TEST(Hazards, H31_discards_hit_only_what_is_free) {
  CrashSetup setup = setup_of(kSmall, 9);
  setup.discard = true;
  std::string script;
  for (int i = 0; i < 12; ++i) {
    script += fmt::format("write /f 0 400000 {}; write /g {} 8192 {}; checkpoint; work; ", 10 + i, i * 4096, 100 + i);
  }
  SweepOptions options = exhaustive();
  options.plan.max_positions = 80;
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_all(setup, "create /f 0644; create /g 0644", script + "fsync /g", options)));
}

// Holes are discarded while strategies fill holes: neither may hit what the other has just written.
TEST(Hazards, H31_discards_of_holes_hit_only_what_is_dead) {
  for (const char* strategy : {"threaded", "hole-plugging", "copying"}) {
    CrashSetup setup = setup_of(kSmall, 31);
    setup.discard = true;
    setup.strategy = strategy;
    std::string start = "create /f 0644; create /g 0644; ";
    for (int i = 0; i < 10; ++i) start += fmt::format("write /f {} 262144 {}; ", i * 262144, 1 + i);
    std::string script;
    for (int i = 0; i < 60; ++i) {
      script += fmt::format("write /f {} 12288 {}; write /g {} 20000 {}; work; ", (i * 37) % 640 * 4096, 100 + i, (i * 13) % 50 * 4096,
                            1000 + i);
      if (i % 6 == 5) script += "fsync /f; checkpoint; ";
    }
    SweepOptions options = exhaustive();
    options.plan.max_positions = 60;
    options.plan.seeds = 1;
    EXPECT_TRUE(good(sweep_all(setup, start, script, options))) << strategy;
  }
}

// The places of old chunk headers are written again: the log that is needed must not be among them.
TEST(Hazards, H32_segments_of_the_chain_are_kept_while_needed) {
  std::string script;
  for (int i = 0; i < 150; ++i) script += fmt::format("write /f {} 30000 {}; fsync /f; ", i % 20 * 4096, 10 + i);
  SweepOptions options = exhaustive();
  options.plan.max_positions = 60;
  options.plan.seeds = 1;
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 11), "create /f 0644", script, options)));
}

// An overwrite races with the cleaner's move of the same block, on a device where cleaning is always needed.
TEST(Hazards, H34_moves_and_overwrites_keep_their_order) {
  std::string start = "create /f 0644; create /g 0644; ";
  for (int i = 0; i < 10; ++i) start += fmt::format("write /f {} 262144 {}; ", i * 262144, 1 + i);
  std::string script;
  for (int i = 0; i < 120; ++i) {
    script += fmt::format("write /f {} 4096 {}; write /g {} 20000 {}; work; ", (i * 37) % 640 * 4096, 100 + i,
                          (i * 13) % 50 * 4096, 1000 + i);
    if (i % 10 == 9) script += "fsync /f; ";
  }
  SweepOptions options = exhaustive();
  options.plan.max_positions = 80;
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_all(setup_of(kSmall, 13), start, script, options)));
}

// A file is put together, which stops at any moment because somebody comes: no checkpoint settles what has been moved.
TEST(Hazards, H34_tidying_that_stops_leaves_every_block_somewhere) {
  std::string start = "create /f 0644; create /g 0644; write /f 0 1048576 1; write /f 1048576 1048576 2; fsync /f; ";
  for (int i = 0; i < 100; ++i)
    start += fmt::format("write /f {} 4096 {}; {}", i * 37 % 512 * 4096, 10 + i, i % 5 == 4 ? "fsync /f; " : "");
  std::string script;
  for (int i = 0; i < 12; ++i) {
    script += fmt::format("tidy /f {}; write /f {} 6000 {}; {}; write /g {} 20000 {}; ", 2 + 3 * i, i * 41 % 500 * 4096 + 100, 200 + i,
                          i % 3 == 0 ? "fsync /f" : i % 3 == 1 ? "seal" : "checkpoint", i * 8192, 300 + i);
  }
  script += "tidy /f 1000; truncate /f 1000000; seal; tidy /f 20; unlink /f; fsync /g";
  World world({.bytes = kBig, .image = {}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(world.run(test::script(start + script))));
  ASSERT_GT(world.fixture.store().counters().cleaned_blocks, 512U) << "all of it once at least";
  SweepOptions options = exhaustive();
  options.plan.max_positions = 80;
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_all(setup_of(kBig, 17), start, script, options)));
}

// Files without names, and names of files that are held, at every moment of their short lives.
TEST(Hazards, H41_orphans_are_found_and_freed) {
  EXPECT_TRUE(good(sweep_orders(kSmall, "create /f 0644; write /f 0 100000 1; create /g 0644; mkdir /d 0755",
                         "hold %1 /f; unlink /f; seal; write %1 0 50000 2; seal; tmpfile %2 / 0600; write %2 0 9000 3;"
                         "seal; link %2 /named; seal; hold %3 /g; rename /named /g move; seal; release %1; release %3;"
                         "seal; checkpoint; unlink /g; release %2; fsync /")));
}

// Recovery starts fresh segments and leaves the rest of the old ones: many times over, on a small device.
TEST(Hazards, H50_heads_go_on_in_fresh_segments_after_recovery) {
  const CrashSetup base = setup_of(kSmall, 0);
  DurableState state = prepare(base, script("create /f 0644; create /g0 0644; create /g1 0644; write /g0 0 70000 9"));
  for (std::uint64_t round = 0; round < 80; ++round) {
    CrashSetup setup = base;
    setup.seed = round + 1;
    // What one round has synced at the head of a group must not be overwritten by the next.
    const Script steps = script(fmt::format("write /f {} 100 {}; fsync /f; write /g{} 0 70000 {}; fsync /g{};"
                                            "write /f 8192 70000 {}; seal",
                                            round * 50, round + 1, round % 2, round + 500, round % 2, round + 700));
    Recording recording(setup, state, steps);
    ASSERT_TRUE(good(recording.failed())) << "round " << round;
    DurableState next;
    const Cut cut{recording.device().position(), CutPolicy::lost, round};
    ASSERT_TRUE(good(verify(recording, cut, {round % 10 == 0, false, 0}, &next))) << "round " << round;
    state = std::move(next);
  }
}

}  // namespace
}  // namespace varve::test
