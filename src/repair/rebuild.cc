#include "repair/rebuild.h"

#include <dirent.h>

#include <algorithm>
#include <optional>

#include "checkpoint/superblocks.h"
#include "format/make.h"
#include "format/record.h"
#include "log/recovery.h"
#include "repair/corrector.h"
#include "repair/finds.h"
#include "repair/kept_states.h"
#include "repair/map_builder.h"

namespace varve::repair {

namespace {

constexpr std::size_t kNodeCacheBytes = 32 << 20;

class Rebuild {
 public:
  Rebuild(io::BlockDevice& device, const format::Superblock& old, const RebuildOptions& options, ActionLog& actions,
          check::Progress* progress)
      : device_(device), old_(old), super_(start(old, options)), options_(options), actions_(actions), progress_(progress),
        space_(device, super_) {}

  Status run();

 private:
  static format::Superblock start(const format::Superblock& old, const RebuildOptions& options);
  Status find_leaves();
  Verdicts decide(const Survey& survey, ActionLog& actions);
  void protect();
  void protect_log();
  Status write_tree(const Edits& edits);
  Status write_image(BlockAddr address);

  io::BlockDevice& device_;
  const format::Superblock& old_;
  format::Superblock super_;  // the one being made
  const RebuildOptions& options_;
  ActionLog& actions_;
  check::Progress* progress_;
  NodeSpace space_;
  LeafPlan plan_;
  Survey survey_;
  std::optional<KeptStates> kept_;  // where there are snapshots
};

format::Superblock Rebuild::start(const format::Superblock& old, const RebuildOptions& options) {
  format::Superblock super = old;
  super.serial = std::max(old.serial, options.above) + 1;
  super.clean = false;
  super.heads = {};
  super.node_head = {};
  if (super.clock_unit > format::clock_unit_of(format::kMaxAddress)) super.clock_unit = format::clock_unit_of(old.device_blocks);
  if (options.keep_log) return super;
  super.chain = super.next_run = {};
  super.epoch = Random::system().next() | 1;
  return super;
}

// Which leaves there are, and what they say.
Status Rebuild::find_leaves() {
  MayBeHeld may_be_held;
  if (kept_) may_be_held = [this](BlockAddr place) { return kept_->may_be_held(place); };
  plan_ = make_leaf_plan(device_, old_, may_be_held, actions_, progress_);
  bool fits = false;
  if (may_be_newest(plan_)) {
    LeafPlan found = newest(plan_);
    const Survey surveyed = TRY(survey(device_, old_, found));
    ActionLog unheard;
    fits = fits_all_counts(found, old_, surveyed, decide(surveyed, unheard));
    if (fits) plan_ = std::move(found);
  }
  report_finds(plan_, old_, fits, actions_);
  survey_ = TRY(survey(device_, old_, plan_));
  return {};
}

Verdicts Rebuild::decide(const Survey& survey, ActionLog& actions) {
  Ino next{old_.next_ino < format::kInoLimit ? old_.next_ino : kRootIno.v + 1};
  if (!survey.facts.inodes.empty()) next = std::max(next, survey.facts.inodes.back().ino + 1);
  Verdicts verdicts;
  if (!options_.keep_log) {
    verdicts = judge(survey.facts, next, actions);
  } else if (!survey.facts.find(kRootIno)) {
    verdicts.made.insert(kRootIno);
    verdicts.inodes[kRootIno] = {2, kRootIno};
    actions.add(ActionCode::directory_made, kRootIno, "the root");
  }
  super_.next_ino = next.v;
  return verdicts;
}

void Rebuild::protect() {
  for (std::uint64_t block = 0; block < survey_.facts.claimed.size(); ++block)
    if (survey_.facts.claimed[block]) space_.protect(BlockAddr{block});
  for (const BlockAddr node : plan_.nodes) space_.protect(node);
  for (const LeafPiece& leaf : plan_.leaves) space_.protect(leaf.address);
  for (const format::TreeId tree : {format::TreeId::reverse_map, format::TreeId::free_map})
    for (const auto& [address, level] : read_old_map(device_, old_, tree).nodes) space_.protect(address);
  for (const format::NodeRef& root : {old_.inode_file, old_.reverse_map, old_.free_map, old_.image})
    space_.protect(root.address);
  if (kept_) kept_->protect(space_);
  if (options_.keep_log) protect_log();
}

// Also what comes behind a damaged chunk: it proves that this one had been durable (H9).
void Rebuild::protect_log() {
  space_.protect(log::where_log_may_go_on(old_, old_.chain));
  space_.protect(old_.next_run);
  const auto visit = [this](const format::Chunk& chunk) -> Status {
    space_.protect(log::where_log_may_go_on(old_, chunk.header.run));
    space_.protect(chunk.header.next_run);
    return format::decode_records(chunk.records, [this](const format::Record& record) -> Status {
      const auto* map = std::get_if<format::MapBlocks>(&record);
      for (std::size_t i = 0; map && i < map->crcs.size(); ++i) space_.protect(map->address + i);
      return {};
    });
  };
  // What cannot be followed cannot be replayed either.
  const auto walked = log::recover_chain(device_, old_, visit, {.accept_damage = true});
  if (walked.ok())
    for (const format::Run& run : walked->behind) space_.protect(run);
}

Status Rebuild::write_tree(const Edits& edits) {
  if (plan_.sound && edits.empty()) return {};
  tree::NodeCache cache(super_.identity, kNodeCacheBytes);
  tree::BlockingSource source(cache, device_);
  tree::TreeRoot root{super_.inode_file, super_.inode_file_level};
  if (plan_.sound) {
    EditList list(edits);
    root = TRY(tree::merge_items(source, root, list, space_, {}));
  } else {
    PlanEditor editor(device_, plan_, edits);
    root = TRY(tree::merge_items(source, {}, editor, space_, {}));
    super_.snapshots.shared_nodes = 0;
    actions_.add(ActionCode::tree_rebuilt);
  }
  super_.inode_file = root.ref;
  super_.inode_file_level = root.level;
  return space_.finish();
}

Status Rebuild::write_image(BlockAddr address) {
  ++super_.lifetime.checkpoints;
  super_.image = {};
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  const std::uint32_t crc = format::encode_super_image(super_, block.span(), address);
  TRY(space_.write(address, block.span(), crc, format::TreeId::super_image, 0));
  super_.image = {address, crc, 0};
  return space_.finish();
}

Status Rebuild::run() {
  if (old_.snapshots.root) {
    kept_.emplace(device_, old_, actions_, progress_);
    TRY(kept_->read());
  }
  TRY(find_leaves());
  const Verdicts verdicts = decide(survey_, actions_);
  const Edits edits = TRY(correct(device_, old_, plan_, survey_, verdicts, actions_));
  protect();
  TRY(write_tree(edits));
  if (kept_) TRY(kept_->write(space_, super_));
  const BlockAddr image = TRY(space_.allocate());
  TRY(MapBuilder(device_, super_, space_, actions_, options_.map_memory).run(image));
  TRY(write_image(image));
  TRY(device_.flush());
  if (options_.only_safe) TRY(demand_safe(actions_, device_.name()));
  TRY(checkpoint::restore_superblocks(device_, super_, [this] { return device_.flush(); }));
  actions_.add(ActionCode::superblocks_written, {}, fmt::format("checkpoint {}", super_.serial));
  return {};
}

}  // namespace

Status rebuild(io::BlockDevice& device, const format::Superblock& super, const RebuildOptions& options, ActionLog& actions,
               check::Progress* progress) {
  return Rebuild(device, super, options, actions, progress).run();
}

}  // namespace varve::repair
