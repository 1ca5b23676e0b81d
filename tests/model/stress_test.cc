// Many threads on one filesystem, with its own threads running: each thread has a model of its part.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cleaner/victim_rule.h"
#include "jobs/clean_job.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr unsigned kThreads = 8;

// Lets the clock run as long as it lives, so that the engine's timers fire.
class Ticker {
 public:
  explicit Ticker(ManualClock& clock)
      : thread_([this, &clock] {
          while (!stop_) {
            clock.advance(50'000'000);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));  // ten times as fast as time
          }
        }) {}
  ~Ticker() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class Stress : public ::testing::Test {
 protected:
  Stress() {
    parameters.bytes = 64u << 20;
    parameters.options = [](fs::Options& options) {
      options.background = true;
      options.memory_bytes = 64u << 20;
      options.checkpoint_records = 2000;
    };
    parameters.lockstep.compare_times = false;
    parameters.lockstep.advance_clock = false;
    parameters.lockstep.remounts = false;
    world = std::make_unique<World>(parameters);
  }

  // Runs `body(thread number)` in each thread; the first failure that one returns.
  template <class Body>
  std::string in_threads(Body&& body) {
    const Ticker ticker(world->clock);
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::string failure;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const std::string text = body(i);
        const std::lock_guard lock(mutex);
        if (failure.empty() && !text.empty()) failure = fmt::format("thread {}: {}", i, text);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failure;
  }

  // A model whose root is a directory of the filesystem.
  std::unique_ptr<Lockstep> part(const std::string& path) {
    auto steps = std::make_unique<Lockstep>(world->fixture, world->clock, parameters.lockstep);
    const Ino ino = *world->fixture.resolve(path);
    if (!steps->adopt_root(ino).ok()) return nullptr;
    return steps;
  }

  ScriptProfile profile(std::size_t steps) const {
    ScriptProfile p;
    p.steps = steps;
    p.spare_root = true;
    p.read_weight = 20;
    p.fsync_weight = 3;
    p.total_bytes = 2u << 20;
    p.file_bytes = 512u << 10;
    return p;
  }

  // Everything that has a name below `root`, as far as the names begin with `prefix`.
  Snapshot named(Snapshot snapshot, const std::string& prefix) {
    std::erase_if(snapshot.entries, [&](const SnapshotEntry& e) { return !e.path.starts_with("/" + prefix); });
    return snapshot;
  }

  static constexpr CompareOptions kNoTimes{false, true};
  WorldParameters parameters;
  std::unique_ptr<World> world;
};

TEST_F(Stress, each_thread_in_its_own_directory) {
  ASSERT_TRUE(good(world->start()));
  std::vector<std::unique_ptr<Lockstep>> parts;
  for (unsigned i = 0; i < kThreads; ++i) {
    ASSERT_TRUE(world->fixture.make(fmt::format("/t{}", i), S_IFDIR | 0755).ok());
    parts.push_back(part(fmt::format("/t{}", i)));
    ASSERT_TRUE(parts.back());
  }
  const Budget budget(0.25);
  const std::string failure = in_threads([&](unsigned i) {
    for (std::uint64_t round = 0; round == 0 || budget.left(); ++round) {
      ScriptGenerator generator(first_seed() * 1000 + round * kThreads + i, profile(0));
      for (int n = 0; n < 400; ++n) {
        const Step step = generator.next(parts[i]->model);
        const std::string text = parts[i]->run(step);
        if (!text.empty()) return text;
      }
      const std::string text = compare(world->fixture, parts[i]->model, kNoTimes);
      if (!text.empty()) return text;
    }
    return std::string();
  });
  ASSERT_TRUE(good(failure));
  for (auto& p : parts) p->model.drop_all_references();
  ASSERT_TRUE(world->fixture.unmount().ok());
  ASSERT_TRUE(good(check_image(world->device)));
  ASSERT_TRUE(world->fixture.mount().ok());
  for (auto& p : parts) EXPECT_TRUE(good(compare(world->fixture, p->model, kNoTimes)));
}

TEST_F(Stress, all_threads_in_one_directory) {
  ASSERT_TRUE(good(world->start()));
  ASSERT_TRUE(world->fixture.make("/shared", S_IFDIR | 0755).ok());
  std::vector<std::unique_ptr<Lockstep>> parts;
  for (unsigned i = 0; i < kThreads; ++i) parts.push_back(part("/shared"));
  const Budget budget(0.2);
  const std::string failure = in_threads([&](unsigned i) {
    ScriptProfile mine = profile(0);
    mine.prefix = fmt::format("t{}-", i);
    mine.names = 40;
    mine.depth = 1;
    mine.names_weight = 150;
    ScriptGenerator generator(first_seed() * 1000 + i, mine);
    for (int n = 0; n < 1000 || budget.left(); ++n) {
      const Step step = generator.next(parts[i]->model);
      if (step.target == "/" && !is_neutral(step.verb)) continue;
      const std::string text = parts[i]->run(step);
      if (!text.empty()) return text;
    }
    return std::string();
  });
  ASSERT_TRUE(good(failure));
  for (int mounts = 0; mounts < 2; ++mounts) {
    const Snapshot found = snapshot_of(world->fixture, &parts[0]->model);
    std::size_t entries = 1;
    for (unsigned i = 0; i < kThreads; ++i) {
      const std::string prefix = fmt::format("t{}-", i);
      const Snapshot expected = named(snapshot_of(parts[i]->model, false), prefix);
      entries += expected.entries.size();
      EXPECT_TRUE(good(difference(expected, named(found, prefix), kNoTimes))) << "thread " << i;
    }
    for (auto& p : parts) p->model.drop_all_references();
    if (mounts == 1) {
      EXPECT_EQ(found.entries.size(), entries);
    }
    ASSERT_TRUE(world->fixture.unmount().ok());
    ASSERT_TRUE(good(check_image(world->device)));
    ASSERT_TRUE(world->fixture.mount().ok());
  }
}

TEST_F(Stress, all_threads_write_parts_of_one_file) {
  ASSERT_TRUE(good(world->start()));
  const Ino ino = world->fixture.make("/file", S_IFREG | 0644)->ino;
  constexpr std::uint64_t kPiece = 3000;  // most blocks belong to two threads
  constexpr std::uint64_t kPieces = 800;
  std::vector<std::atomic<std::uint64_t>> seeds(kPieces);
  const std::string failure = in_threads([&](unsigned i) {
    Dice dice(first_seed() * 100 + i);
    for (int n = 0; n < 3000; ++n) {
      const std::uint64_t piece = dice.below(kPieces / kThreads) * kThreads + i;
      const std::uint64_t seed = 1 + piece * 10000 + static_cast<std::uint64_t>(n);
      const auto data = pattern_bytes(seed, piece * kPiece, kPiece);
      const Status status = world->fixture.write(ino, piece * kPiece, data);
      if (!status.ok()) return status.error().message();
      seeds[piece] = seed;
      if (n % 100 == 0) {
        auto synced = world->fixture.call([&](fs::Operation& op) { return world->fixture.fs().fsync(op, ino); });
        if (!synced.ok()) return synced.error().message();
      }
      auto back = world->fixture.read(ino, piece * kPiece, kPiece);
      if (!back.ok()) return back.error().message();
      if (*back != data) return fmt::format("piece {} reads back wrong", piece);
    }
    return std::string();
  });
  ASSERT_TRUE(good(failure));
  for (int mounts = 0; mounts < 2; ++mounts) {
    for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
      if (seeds[piece] == 0) continue;
      const auto found = world->fixture.read(ino, piece * kPiece, kPiece);
      ASSERT_TRUE(found.ok());
      ASSERT_EQ(*found, pattern_bytes(seeds[piece], piece * kPiece, kPiece)) << "piece " << piece;
    }
    ASSERT_TRUE(world->fixture.unmount().ok());
    ASSERT_TRUE(good(check_image(world->device)));
    ASSERT_TRUE(world->fixture.mount().ok());
  }
}

// Users write and the cleaner moves while policies, placements and strategies are replaced under them, and somebody asks for
// more cleaning.
TEST_F(Stress, policies_change_under_load) {
  parameters.bytes = 24u << 20;
  world = std::make_unique<World>(parameters);
  ASSERT_TRUE(good(world->start()));
  const Ino ino = world->fixture.make("/file", S_IFREG | 0644)->ino;
  constexpr std::uint64_t kBlocks = 3500;
  std::vector<std::uint64_t> seeds(kBlocks);  // each block is one thread's
  auto write = [&](std::uint64_t block, std::uint64_t seed) {
    seeds[block] = seed;
    return world->fixture.write(ino, block * kBlockSize, pattern_bytes(seed, 0, kBlockSize));
  };
  for (std::uint64_t block = 0; block < kBlocks; ++block) ASSERT_TRUE(write(block, block).ok());
  std::atomic<unsigned> writing{kThreads - 1};
  const std::string failure = in_threads([&](unsigned i) -> std::string {
    Dice dice(first_seed() * 100 + i);
    if (i == 0) {
      auto& fs = world->fixture.fs();
      const auto rules = cleaner::victim_rules();
      const auto placements = cleaner::registry().placements.names();
      const auto strategies = cleaner::registry().strategies.names();
      while (writing) {
        if (Status tuned = fs.tune("policy", dice.pick(rules).name); !tuned.ok()) return tuned.error().message();
        if (Status tuned = fs.tune("placement", dice.pick(placements).name); !tuned.ok()) return tuned.error().message();
        if (Status tuned = fs.tune("strategy", dice.pick(strategies).name); !tuned.ok()) return tuned.error().message();
        jobs::CleanRequest request;
        request.strategy = dice.pick(strategies).name;
        if (Status started = fs.start_clean(request); !started.ok() && !started.fails_with(Errc::busy)) return started.error().message();
        if (dice.percent(10)) fs.stop_clean();
        if (fs.clean_state().phase == jobs::CleanState::Phase::failed) return fs.clean_state().reason;
        if (fs.status().placement.empty()) return "no placement";
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // or cleaning would never begin
      }
      return "";
    }
    std::string text;
    for (std::uint64_t n = 0; n < 2500 && text.empty(); ++n) {
      const std::uint64_t piece = dice.percent(80) ? dice.below(50) : dice.below(kBlocks / kThreads);
      if (Status written = write(piece * kThreads + i, n * kBlocks + piece); !written.ok()) text = written.error().message();
    }
    --writing;
    return text;
  });
  ASSERT_TRUE(good(failure));
  EXPECT_GT(world->fixture.fs().status().segments_cleaned, 10U);
  ASSERT_TRUE(world->fixture.unmount().ok());
  ASSERT_TRUE(good(check_image(world->device)));
  ASSERT_TRUE(world->fixture.mount().ok());
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    const auto found = world->fixture.read(ino, block * kBlockSize, kBlockSize);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(*found, pattern_bytes(seeds[block], 0, kBlockSize)) << "block " << block;
  }
}

// Renames against lookups and lists: a name that is always there, first here, then there, is never missed in both.
TEST_F(Stress, a_file_that_is_renamed_is_always_somewhere) {
  ASSERT_TRUE(good(world->start()));
  ASSERT_TRUE(world->fixture.make("/a", S_IFDIR | 0755).ok());
  ASSERT_TRUE(world->fixture.make("/b", S_IFDIR | 0755).ok());
  const Ino a = *world->fixture.resolve("/a");
  const Ino b = *world->fixture.resolve("/b");
  const Ino file = world->fixture.make("/a/x", S_IFREG | 0644)->ino;
  std::atomic<bool> done{false};
  const std::string failure = in_threads([&](unsigned i) {
    auto& fs = world->fixture.fs();
    if (i == 0) {
      for (int n = 0; n < 4000; ++n) {
        const bool back = n % 2 == 1;
        auto status = world->fixture.call(
            [&](fs::Operation& op) { return fs.rename(op, back ? b : a, "x", back ? a : b, "x", 0); });
        if (!status.ok()) return status.error().message();
      }
      done = true;
      return std::string();
    }
    while (!done) {
      auto attr = world->fixture.getattr(file);
      if (!attr.ok() || attr->nlink != 1) return std::string("the file's attributes are gone or wrong");
      for (const Ino directory : {a, b}) {
        auto entries = world->fixture.list(directory);
        if (!entries.ok()) return entries.error().message();
        for (const ListedEntry& entry : *entries) {  // the file may come twice: it can move while the list is made
          if (entry.name != "." && entry.name != ".." && entry.name != "x") return "lists " + entry.name;
          if (entry.name == "x" && entry.ino != file) return std::string("lists a wrong inode");
        }
      }
      (void)world->fixture.lookup(a, "x");
    }
    return std::string();
  });
  EXPECT_TRUE(good(failure));
  EXPECT_TRUE(world->fixture.lookup(a, "x").ok());
}

}  // namespace
}  // namespace varve::test
