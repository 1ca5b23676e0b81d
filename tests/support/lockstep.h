// Runs a script on a filesystem and on the model side by side: every answer is compared as it comes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/fs_fixture.h"
#include "support/manual_clock.h"
#include "support/model_fs.h"
#include "support/script.h"

namespace varve::test {

struct LockstepOptions {
  bool compare_times = true;  // false when other threads move the clock
  bool advance_clock = true;  // a millisecond before each step
  bool remounts = true;       // false: steps that need the filesystem for themselves are left out
};

class Lockstep {
 public:
  // The fixture is mounted. `model` starts as what is on it; adopt_root() fills in the root of a fresh image.
  Lockstep(FsFixture& fixture, ManualClock& clock, const LockstepOptions& options = {})
      : fixture_(fixture), clock_(clock), options_(options) {}

  ModelFs model;

  Status adopt_root(Ino root = kRootIno);
  // Empty if both did the same; else what the filesystem did wrong.
  std::string run(const Step& step);
  // Makes the model keep the automatic snapshots that the filesystem keeps by now. Each must show this state or that of `before` the last
  // step. Empty, or what one shows instead. After each step that is done already.
  std::string follow_automatic(const ModelFs& before);
  std::uint64_t automatic_seen() const { return automatic_seen_; }
  std::uint64_t refused_for_space() const { return refused_for_space_; }
  // What became of the last step: acknowledged; and did it change the model?
  bool succeeded() const { return succeeded_; }
  bool changed() const { return changed_; }
  // What a crash during the last step may leave besides the state before it and `model`: checkpoints that came with it, without the step
  // or only some of them. Of automatic snapshots only; what steps ask for comes by itself.
  const std::vector<ModelFs>& between() const { return between_; }

 private:
  struct Answer {
    Answer() = default;
    explicit Answer(std::optional<Error> failure) : error(std::move(failure)) {}
    explicit Answer(const fs::Attr& inode) : attr(inode) {}

    std::optional<Error> error;
    std::optional<fs::Attr> attr;          // of the inode the step made or changed
    std::optional<std::vector<std::byte>> data;
  };
  std::string run_one(const Step& step);
  std::set<std::string> automatic_names() const;
  void find_between(const ModelFs& before, const std::set<std::string>& former);
  Answer ask(const Step& step);
  Answer ask_make(const Step& step);
  Answer ask_names(const Step& step);
  Answer ask_inode(const Step& step);
  Answer ask_attributes(const Step& step, Ino ino);
  Answer ask_whole(const Step& step);
  Answer ask_hold(const Step& step);
  std::string judge(const Step& step, const Answer& answer, Timestamp now);
  std::string judge_error(const Step& step, const Answer& answer, const Result<ModelId>& expected);
  std::string judge_read(const Step& step, const Answer& answer);
  bool space_is_low(const Step& step);
  void drop_reference(const Result<fs::Attr>& attr);

  FsFixture& fixture_;
  ManualClock& clock_;
  LockstepOptions options_;
  std::uint64_t refused_for_space_ = 0;
  bool succeeded_ = false, changed_ = false;
  std::uint64_t automatic_seen_ = 0;
  std::set<std::string> followed_;  // automatic ones
  std::vector<ModelFs> between_;
};

// Runs all steps; empty, or the number and text of the step that went wrong and how.
std::string run_script(Lockstep& lockstep, const Script& script);

}  // namespace varve::test
