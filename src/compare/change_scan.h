// Answers about what differs between two snapshots, found by walking both trees side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compare/extent_sweep.h"
#include "compare/kept_file.h"
#include "compare/question.h"
#include "tree/pair_walk.h"

namespace varve::compare {

// An answer that takes several attempts: what one has found stays, and the next goes on behind it.
struct Progress {
  Answer answer;
  std::uint64_t nodes = 0;  // that were looked into
  std::vector<KeptFile> files;  // that are known, at least in part
  bool began = false;

  // Enough for one answer, which must not keep too many nodes in memory, nor the gate for long.
  bool is_enough() const { return answer.bytes.size() > kFullAnswerBytes || nodes > kMostNodes; }

  static constexpr std::uint64_t kMostNodes = 128;
  static constexpr std::size_t kFullAnswerBytes = kMostAnswerBytes - 3072;  // no record is longer than that
};

// One attempt.
class ChangeScan {
 public:
  ChangeScan(const TreeSide& before, const TreeSide& after, Progress& progress)
      : before_(before), after_(after), progress_(progress), answer_(progress.answer) {}
  Status run();

 private:
  using Items = std::span<const format::ItemRef>;

  Status scan(const tree::PairWalk::Stretch& stretch);
  Status sweep_extents(Ino ino, std::uint64_t from, const format::Key& bound);
  Result<bool> are_same(Items before, Items after);
  Result<bool> mean_the_same(const format::NodeRef& before, const format::NodeRef& after);
  Status compare(const format::ItemRef* before, const format::ItemRef* after);
  bool tell(const Record& record);

  const TreeSide before_, after_;
  Progress& progress_;
  Answer& answer_;
};

}  // namespace varve::compare
