// Operations as data: what a test does to a filesystem, in a textual form that a failing test prints and that parses
// back, one step to a line (or separated by ';'):
//
//   create /a/b 0644            write /a/b 4096 8192 17        rename /a /b exchange      hold %1 /a/b
//   mkdir /a 0755               append /a/b 100 18             fallocate /f punch 0 4096  truncate %1 0
//
// A target is a path or a slot (%name): an inode that a step "hold" or "tmpfile" keeps a reference to.
// Contents are patterns: the last number of write, append and setxattr is their seed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "support/model_fs.h"

namespace varve::test {

enum class Verb : std::uint8_t {
  create,       // target mode
  mknod,        // target mode (with type) rdev
  mkdir,        // target mode
  symlink,      // target other = where it points
  tmpfile,      // slot, other = directory, mode
  link,         // target = existing path or slot, other = new path
  unlink,       // target
  rmdir,        // target
  rename,       // target, other, flags
  write,        // target offset length seed
  append,       // target length seed: at the end the model knows
  read,         // target offset length: changes nothing, compared at once
  truncate,     // target size
  fallocate,    // target mode offset length
  chmod,        // target mode
  chown,        // target uid gid
  utimes,       // target atime mtime, signed nanoseconds
  setxattr,     // target, other = name, length seed flags
  removexattr,  // target, other = name
  hold,         // slot, other = path
  release,      // slot
  fsync,        // target
  sync,
  checkpoint,
  remount,  // clean unmount and mount
  pass,     // milliseconds go by
  seal,     // what waits in memory goes to the device, without a flush
  clean,    // other = strategy: all that it would do, as `varve clean` asks for it
  work,     // one round of what background threads would do: cleaning, a checkpoint that is due
  tidy,     // target, number: puts a file together until it has asked so often whether to stop; no checkpoint follows
  keep,     // target = name: of a new snapshot
  drop,     // target = name: of a snapshot that goes
  relabel,  // target, other = names: of a snapshot, and its new one
  move,     // number: copies what lives in that segment (modulo those that hold files), as the middle of a round of cleaning
  resize,   // bytes: grows or shrinks to that, if that can be done
};

struct Step {
  Verb verb = Verb::sync;
  std::string target;
  std::string other;
  std::array<std::uint64_t, 3> n{};  // numbers in the order of the textual form
  unsigned flags = 0;                // rename and setxattr flags, fallocate mode

  bool operator==(const Step&) const = default;
};

using Script = std::vector<Step>;

std::string to_string(const Step& step);
std::string to_string(const Script& script, std::string_view separator = "\n");
Result<Step> parse_step(std::string_view line);
Result<Script> parse_script(std::string_view text);  // '#' starts a comment
Script script(std::string_view text);                // for literals in tests: throws on a mistake
Step step(std::string_view text);                    // the same, of one

// Steps that change nothing a user can see.
bool is_neutral(Verb verb);
bool is_of_snapshots(Verb verb);
// Steps after which everything acknowledged is durable.
bool is_barrier(Verb verb);

// The two ends of a step, resolved in a model: where a path leads or would be made.
struct Place {
  ModelId parent = 0;
  std::string name;
};
bool is_slot(std::string_view target);
Result<Place> place_of(const ModelFs& model, std::string_view path);  // parent must exist
Result<ModelId> inode_of(const ModelFs& model, std::string_view target);

// Applies a step to the model. The id of the inode it made, 0 for other steps.
Result<ModelId> apply(ModelFs& model, const Step& step, Timestamp now);

Timestamp timestamp_from_ns(std::int64_t ns);

}  // namespace varve::test
