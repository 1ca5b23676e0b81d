#include "fs/tidier.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "cleaner/file_source.h"
#include "cleaner/patience.h"
#include "cleaner/strategy/power_source.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "fs/operation.h"
#include "fs/read_probe.h"
#include "store/store.h"

namespace varve::fs {

namespace {

constexpr std::uint64_t kLeastBuffer = 256, kMostBuffer = 2048;  // blocks in memory: what is read together is read in few sweeps

auto by_gain(const std::pair<const std::uint64_t, std::uint64_t>& file) { return std::pair(file.second, file.first); }

}  // namespace

// Those with most to gain come first.
class Tidier::Files final : public cleaner::FileSource {
 public:
  explicit Files(const FileMap& files) : left_(files.begin(), files.end()) { std::ranges::sort(left_, {}, by_gain); }

  Result<std::optional<Ino>> next() override {
    begun_.reset();
    if (left_.empty()) return std::optional<Ino>();
    begun_ = left_.back();
    left_.pop_back();
    return std::optional(Ino{begun_->first});
  }
  // Those that were not looked at to their end.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unfinished() const {
    auto files = left_;
    if (begun_) files.push_back(*begun_);
    return files;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> left_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> begun_;
};

Tidier::Tidier(Engine& engine)
    : engine_(engine), on_(engine.store().device().geometry().rotational && engine.options().cleaner && !engine.options().read_only) {}

Tidier::~Tidier() = default;

// --- what happens ---------------------------------------------------------------------------------------------------------

// When there are too many, the one with least to gain goes.
void Tidier::note(Ino file, std::uint64_t pieces) {
  files_[file.v] += pieces;
  has_files_.store(true, std::memory_order_relaxed);
  if (files_.size() > kMostFiles) files_.erase(std::ranges::min_element(files_, {}, by_gain));
}

void Tidier::note_overwrite(Ino file, std::uint64_t blocks) {
  const Lock lock(mutex_);
  written_over_ += blocks;
  note(file, 1);
}

void Tidier::note_pieces(Ino file, std::uint64_t pieces) {
  const Lock lock(mutex_);
  read_in_pieces_ += pieces;
  note(file, pieces);
}

bool Tidier::is_due(std::uint64_t now_ns) {
  const std::uint64_t uses = uses_.load(std::memory_order_relaxed);
  if (uses != seen_uses_ || !since_ns_) {
    seen_uses_ = uses;
    since_ns_ = now_ns;
  }
  return has_work() && now_ns - since_ns_ >= kIdleNs;
}

// --- tidying --------------------------------------------------------------------------------------------------------------

// A block that is moved is read and written.
std::uint64_t Tidier::budget(const ReadCost& cost) {
  const Lock lock(mutex_);
  const std::uint64_t earned = written_over_ + read_in_pieces_ * cost.seek_blocks() / 2;
  return earned - std::min(earned, moved());
}

Tidier::FileMap Tidier::take_files() {
  const Lock lock(mutex_);
  has_files_.store(false, std::memory_order_relaxed);
  return std::exchange(files_, {});
}

void Tidier::run(const std::function<bool()>& disturbed) {
  store::Store& store = engine_.store();
  const std::uint64_t uses = uses_.load(std::memory_order_relaxed);
  const auto stop = [&] { return uses_.load(std::memory_order_relaxed) != uses || disturbed(); };
  Files files(take_files());
  if (cleaner::read_power() == cleaner::Power::battery || store.faults().read_only()) return;
  const ReadCost cost = probe_reads(store.device(), *store.options().clock, *store.options().random);
  if (!cost.seeks()) return;
  tidy(files, cost, stop);
  if (!stop()) return;
  const Lock lock(mutex_);
  for (const auto& [file, pieces] : files.unfinished()) note(Ino{file}, pieces);
}

// The maps know only what a checkpoint has merged. What a round has moved holds twice its room until it is settled.
void Tidier::tidy(Files& files, const ReadCost& cost, const std::function<bool()>& stop) {
  store::Store& store = engine_.store();
  auto rules = engine_.cleaner().rules({.strategy = "defragmenting", .victims = {}, .placement = {}});
  if (!rules.ok() || stop() || !store.checkpoints().make({}).ok()) return;
  cleaner::Task task;
  task.most_moved = budget(cost);
  task.for_room = false;
  task.tidies = true;
  task.seek_blocks = cost.seek_blocks();
  task.buffer = std::clamp<std::uint64_t>(store.options().memory_bytes / 32 / kBlockSize, kLeastBuffer, kMostBuffer);
  task.files = &files;
  task.stop = stop;
  cleaner::Patience patience;
  while (!stop()) {
    const cleaner::Round round = engine_.cleaner().run_round(task, *rules);
    moved_ += round.written;
    if (!round.moved || stop() || !store.checkpoints().make({}).ok()) break;
    if (round.finished || !patience.lasts(round.left)) break;
  }
  engine_.cleaner().set_state("idle: enough clean segments");
}

}  // namespace varve::fs
