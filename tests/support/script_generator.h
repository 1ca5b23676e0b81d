// Random scripts over a small namespace: the same seed gives the same script.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/model_fs.h"
#include "support/script.h"

namespace varve::test {

struct ScriptProfile {
  std::size_t steps = 200;
  std::size_t names = 6;           // different names in a directory
  std::size_t depth = 3;           // directories above a name, at most
  std::string prefix;              // of every name: several scripts can share a directory
  bool spare_root = false;         // the root's own attributes are not touched
  std::uint64_t file_bytes = 256 * 1024;  // writes end before this
  std::uint64_t write_bytes = 32 * 1024;  // most writes are no longer than this
  std::uint64_t total_bytes = 4u << 20;   // above this much data unlinks and truncates prevail
  unsigned far_percent = 1;        // writes and truncates at some far place of a sparse file
  unsigned error_percent = 8;      // steps whose operands are chosen blindly: most of them fail
  // Weights of the kinds of steps.
  unsigned names_weight = 40;  // create … rename
  unsigned data_weight = 40;   // write … fallocate
  unsigned attribute_weight = 12;
  unsigned reference_weight = 4;  // hold, release, tmpfile
  unsigned fsync_weight = 4;
  unsigned checkpoint_weight = 0;
  unsigned remount_weight = 0;
  unsigned read_weight = 0;
  unsigned seal_weight = 0;
  unsigned work_weight = 0;
  unsigned clean_weight = 0;
  unsigned move_weight = 0;
  unsigned resize_weight = 0;
  std::uint64_t least_bytes = 8u << 20, most_bytes = 64u << 20;  // of the filesystem, where its size changes
  unsigned snapshot_weight = 0;
  std::size_t most_snapshots = 4;
  unsigned pass_weight = 0;  // up to 40 s
  std::vector<std::string> strategies;  // to clean by
};

// For small devices: few files, mostly their data, so that the log wraps and the cleaner works.
void crowd(ScriptProfile& profile);

Script random_script(std::uint64_t seed, const ScriptProfile& profile);

// Draws numbers; independent of the standard library's distributions, so that a seed means the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : random_.next() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool percent(unsigned chance) { return below(100) < chance; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  SeededRandom random_;
};

// Chooses steps that fit a state.
class ScriptGenerator {
 public:
  ScriptGenerator(std::uint64_t seed, const ScriptProfile& profile) : dice_(seed), profile_(profile) {}
  Step next(const ModelFs& state);

 private:
  enum class Wanted : std::uint8_t { any, file, directory, not_directory };

  Step names_step(const ModelFs& state);
  Step rename_step(const ModelFs& state);
  Step data_step(const ModelFs& state);
  Step attribute_step(const ModelFs& state);
  Step reference_step(const ModelFs& state);
  Step snapshot_step(const ModelFs& state);
  std::string existing(const ModelFs& state, Wanted wanted);  // a path, "/" if there is none
  std::string file_target(const ModelFs& state);              // a path or a slot
  std::string fresh(const ModelFs& state);                    // a path that may or may not exist
  std::string blind_path();
  std::string name();
  std::uint64_t place_in(std::uint64_t size);
  std::uint64_t length();
  std::uint64_t seed() { return ++last_seed_; }
  std::string slot() { return "%" + std::to_string(dice_.below(4)); }

  Dice dice_;
  ScriptProfile profile_;
  std::uint64_t last_seed_ = 0;
};

}  // namespace varve::test
