#include "jobs/tidier.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "cleaner/file_source.h"
#include "cleaner/patience.h"
#include "cleaner/strategy/power_source.h"
#include "device/faults.h"
#include "jobs/read_probe.h"
#include "operation/file_notes.h"

namespace varve::jobs {

// Files with most to gain come first.
class Tidier::Files final : public cleaner::FileSource {
 public:
  explicit Files(const operation::FileNotes::Files& files) : left_(files.begin(), files.end()) {
    std::ranges::sort(left_, {}, [](const auto& file) { return std::pair(file.second, file.first); });
  }

  Result<std::optional<Ino>> next() override {
    begun_.reset();
    if (left_.empty()) return std::optional<Ino>();
    begun_ = left_.back();
    left_.pop_back();
    return std::optional(Ino{begun_->first});
  }
  // Returns the files that nobody has looked at to their end.
  operation::FileNotes::Files unfinished() const {
    operation::FileNotes::Files files(left_.begin(), left_.end());
    if (begun_) files.insert(*begun_);
    return files;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> left_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> begun_;
};

bool Tidier::is_pending() { return parts_.notes.any(); }

bool Tidier::is_due(std::uint64_t now_ns) {
  const std::uint64_t uses = parts_.notes.uses();
  if (uses != seen_uses_ || !since_ns_) {
    seen_uses_ = uses;
    since_ns_ = now_ns;
  }
  return is_pending() && now_ns - since_ns_ >= kIdleNs;
}

Job::Next Tidier::step(const Interrupt& disturbed) {
  const auto stop = [&, uses = parts_.notes.uses()] { return parts_.notes.uses() != uses || disturbed(); };
  Files files(parts_.notes.take());
  if (cleaner::read_power() == cleaner::Power::battery || parts_.faults.read_only()) return Next::later;
  const ReadCost cost = probe_reads(parts_.device, parts_.clock, parts_.random);
  if (!cost.seeks()) return Next::later;
  tidy(files, cost, stop);
  if (stop()) parts_.notes.put_back(files.unfinished());
  return Next::later;
}

// The maps know only what a checkpoint has merged. What a round has moved holds twice its room until it is settled.
void Tidier::tidy(Files& files, const ReadCost& cost, const Interrupt& stop) {
  auto rules = parts_.cleaner.rules({.strategy = "defragmenting", .victims = {}, .placement = {}});
  if (!rules.ok() || stop() || !parts_.checkpoints.make({}).ok()) return;
  cleaner::Task task;
  const std::uint64_t earned = parts_.notes.cost(cost.seek_blocks());
  task.most_moved = earned - std::min(earned, moved());
  task.for_room = false;
  task.tidies = true;
  task.seek_blocks = cost.seek_blocks();
  task.files = &files;
  task.stop = stop;
  cleaner::Patience patience;
  while (!stop()) {
    const cleaner::Round round = parts_.cleaner.run_round(task, *rules);
    moved_ += round.written;
    if (!round.moved || stop() || !parts_.checkpoints.make({}).ok()) break;
    if (round.finished || !patience.lasts(round.left)) break;
  }
  parts_.cleaner.set_state(cleaner::Cleaner::kResting);
}

}  // namespace varve::jobs
