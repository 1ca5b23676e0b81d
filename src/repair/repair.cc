#include "repair/repair.h"

#include "checkpoint/superblocks.h"
#include "io/foreign_content.h"
#include "io/overlay_device.h"
#include "log/recovery.h"
#include "repair/rebuild.h"
#include "repair/superblock_search.h"

namespace varve::repair {

using check::Code;

namespace {

constexpr unsigned kMostRounds = 8;

Status ignore(const format::Chunk&) { return {}; }

class Repair {
 public:
  Repair(io::BlockDevice& device, const Recover& recover, const RepairOptions& options, check::Progress* progress)
      : device_(device), recover_(recover), options_(options), progress_(progress) {}

  Result<Outcome> run();

 private:
  Result<check::Report> look(bool verify_data);
  bool log_is_lost(const check::Report& report);
  Result<check::Report> find_superblock(const Error& why);
  Result<check::Report> first_look();
  Status go_on(check::Report& report);
  Status round(const check::Report& report);
  Status demand_readable_log(const check::Report& report) const;
  Status replay(const check::Report& report);
  Status replay_in_place(Tolerance tolerance);
  void is_done(ActionLog meant);
  Error cannot_replay(const Error& why) const;
  Status allow_writing(const format::Superblock& super, const std::string& state) const;
  Status take(const FoundSuperblock& found, std::string detail);
  Result<bool> newer_superblock(const check::Report& report, Serial settled);
  Status rebuild_trees(const check::Report& report, bool keep_log, ActionLog meant);
  Status close();

  io::BlockDevice& device_;
  const Recover& recover_;
  const RepairOptions& options_;
  check::Progress* progress_;
  Outcome outcome_;
  check::ProblemLog found_;      // by the repair, not by the checker
  Serial settled_;               // highest that the log names
  bool rebuilt_under_log_ = false;
  bool changed_ = false;         // there is no way back: what was done has to be told, whatever comes
};

// Damaged file blocks stay: reading them is an error, which is better than a guess. So does what is damaged of a snapshot's tree.
bool needs_work(const check::Report& report) {
  const auto data = report.problems.count(Code::data_damaged) + report.problems.count(Code::data_unreadable) +
                    report.problems.count(Code::snapshot_damaged);
  // Copies that differ, or a torn one, are what a crash leaves; the replay makes them equal.
  const auto left_by_crash = report.problems.count(Code::superblocks_differ) + report.problems.count(Code::superblock_torn);
  const auto by_replay = report.needs_recovery ? left_by_crash : 0;
  return report.errors() > data || report.warnings() > by_replay;
}

Result<check::Report> Repair::look(bool verify_data) {
  return check::check(device_, {.verify_data = verify_data, .memory_bytes = options_.check_memory}, progress_);
}

// The chunk that follows the checkpoint is damaged, though later ones show that it had been there.
bool Repair::log_is_lost(const check::Report& report) {
  if (report.super.clean || report.needs_recovery) return false;
  return !log::recover_chain(device_, report.super, ignore).ok();
}

// The first look, when no superblock is where it should be.
Result<check::Report> Repair::find_superblock(const Error& why) {
  if (why.is(Errc::unknown_feature)) return why;
  const bool forbidden = !options_.search && (!options_.search_if_blank || !io::find_any_content(device_).empty());
  if (why.is(Errc::not_varve) && forbidden)
    return Error(Errc::not_varve, fmt::format("{0}; if there was one before, fsck.varve --search {1} says what is left of it, and "
                                              "with -y takes it back, which destroys what is there now",
                                              why.message(), device_.name()));
  const FoundSuperblock found = TRY(search_superblock(device_, progress_));
  if (why.is(Errc::not_varve) && !options_.search && !found.whole)
    return Error(Errc::not_varve, fmt::format("{0}; block {1} has the superblock of one, but its trees are damaged: fsck.varve --search "
                                              "{2} says what is left of it, and with -y takes it back, which destroys what is there now",
                                              why.message(), found.address, device_.name()));
  TRY(allow_writing(found.super, "no superblock is where it should be"));
  found_.add(Code::superblock_lost, {found.address, {}}, why.message());
  TRY(take(found, fmt::format("block {}, {} of checkpoint {}", found.address, found.image ? "the image" : "a copy",
                              found.super.serial)));
  return look(options_.verify_data);
}

Status Repair::take(const FoundSuperblock& found, std::string detail) {
  ActionLog meant = outcome_.actions;
  meant.add(ActionCode::superblock_found, {}, std::move(detail));
  if (options_.only_safe) TRY(demand_safe(meant, device_.name()));
  format::Superblock super = found.super;
  TRY(checkpoint::restore_superblocks(device_, super, [this] { return device_.flush(); }));
  is_done(std::move(meant));
  return {};
}

void Repair::is_done(ActionLog meant) {
  outcome_.actions = std::move(meant);
  changed_ = true;
}

Status Repair::rebuild_trees(const check::Report& report, bool keep_log, ActionLog meant) {
  const RebuildOptions options{.keep_log = keep_log, .above = settled_, .only_safe = options_.only_safe,
                               .map_memory = options_.map_memory};
  const Status done = rebuild(device_, report.super, options, meant, progress_);
  const auto now = checkpoint::read_superblocks(device_);
  // One of the superblocks may have been written before the other one failed.
  const bool has_switched = done.ok() || (now.ok() && now->best.serial > report.super.serial);
  if (has_switched) is_done(std::move(meant));
  return done;
}

// The log names a checkpoint that no superblock knows: its image may be found.
Result<bool> Repair::newer_superblock(const check::Report& report, Serial settled) {
  const auto found = search_superblock(device_, progress_, report.super.identity, settled - 1);
  if (!found.ok()) return false;
  TRY(take(*found, fmt::format("block {}, of checkpoint {}", found->address, found->super.serial)));
  return true;
}

// What the log holds must not be cut off for that.
bool is_no_fault_of_the_log(const Error& why) {
  return why.is(Errc::no_space) || why.is(Errc::no_memory) || why.is(Errc::io) || why.is(Errc::unknown_feature);
}

Error Repair::cannot_replay(const Error& why) const {
  return Error(why.code(), fmt::format("{0}: the log cannot be replayed: {1}. It is left as it is. Copy what can be read to another "
                                       "filesystem: varve salvage {0} DIR", device_.name(), why.message()));
}

Status Repair::replay_in_place(Tolerance tolerance) {
  ActionLog meant = outcome_.actions;
  meant.add(ActionCode::log_replayed);
  if (tolerance == Tolerance::lost_inodes) meant.add(ActionCode::changes_dropped);
  if (tolerance == Tolerance::log_damage) meant.add(ActionCode::log_cut, {}, "what had been written after it is lost");
  if (options_.only_safe) TRY(demand_safe(meant, device_.name()));
  const Status done = recover_(device_, tolerance);
  // A checkpoint may have been written before an error: a loss is told.
  if (done.ok() || tolerance != Tolerance::nothing) is_done(std::move(meant));
  return done;
}

// Tries on an overlay first: what the log holds goes into the trees only if that works.
Status Repair::replay(const check::Report& report) {
  for (const Tolerance tolerance : {Tolerance::nothing, Tolerance::lost_inodes, Tolerance::log_damage}) {
    io::OverlayDevice overlay(device_);
    const Status tried = recover_(overlay, tolerance);
    if (tried.ok()) return replay_in_place(tolerance);
    const bool cut_all_the_same = options_.cut_unreadable_log && tried.fails_with(Errc::io);
    if (is_no_fault_of_the_log(tried.error()) && !cut_all_the_same) return cannot_replay(tried.error());
    if (tolerance != Tolerance::lost_inodes) continue;
    found_.add(Code::log_damaged, {}, tried.error().message());
    const auto walked = log::recover_chain(device_, report.super, ignore, {.accept_damage = true});
    if (!walked.ok() || walked->settled <= report.super.serial || settled_ >= walked->settled) continue;
    settled_ = walked->settled;
    if (TRY(newer_superblock(report, walked->settled))) return {};
  }
  ActionLog meant = outcome_.actions;
  meant.add(ActionCode::log_cut, {}, "it cannot be replayed at all");
  return rebuild_trees(report, false, std::move(meant));
}

// A program that does not know all the rules spoils what they are about.
Status Repair::allow_writing(const format::Superblock& super, const std::string& state) const {
  Status known = format::check_features(super, format::Intent::write);
  if (known.ok() && super.serial.v > format::kMostCount)
    known = Error(Errc::out_of_range, fmt::format("checkpoint {} is the last that there can be: mount it with -o ro and copy what it "
                                                  "holds to a new filesystem", super.serial));
  if (known.ok()) return {};
  return Error(known.error().code(), fmt::format("{}: {}, but nothing is repaired: {}", device_.name(), state, known.error().message()));
}

// New trees go into free blocks, and those behind a place of the log that cannot be read seem to be free.
Status Repair::demand_readable_log(const check::Report& report) const {
  if (options_.cut_unreadable_log) return {};
  const auto walked = log::recover_chain(device_, report.super, ignore);
  return walked.fails_with(Errc::io) ? Status(cannot_replay(walked.error())) : Status();
}

Status Repair::round(const check::Report& report) {
  TRY(allow_writing(report.super, fmt::format("{} errors{}", report.errors(), report.needs_recovery ? " and a log to replay" : "")));
  if (!report.needs_recovery) return rebuild_trees(report, false, outcome_.actions);
  TRY(demand_readable_log(report));
  // The trees first, as far as the replay needs them; what is wrong about names afterwards, when the log has said its part.
  if (!needs_work(report) || rebuilt_under_log_) return replay(report);
  rebuilt_under_log_ = true;
  return rebuild_trees(report, true, outcome_.actions);
}

Result<check::Report> Repair::first_look() {
  const check::CheckOptions options{.verify_data = options_.verify_data, .skip_when_clean = options_.skip_when_clean,
                                    .memory_bytes = options_.check_memory};
  auto first = check::check(device_, options, progress_);
  check::Report report = first.ok() ? std::move(first).value() : TRY(find_superblock(first.error()));
  outcome_.before = report;
  if (report.needs_recovery && !needs_work(report) && found_.kept().empty()) {
    // As the next mount would find it.
    io::OverlayDevice overlay(device_);
    if (recover_(overlay, Tolerance::nothing).ok())
      outcome_.before = TRY(check::check(overlay, {.verify_data = options_.verify_data, .memory_bytes = options_.check_memory}, progress_));
  }
  return report;
}

// `report`: in, the first look; out, the last one that there was.
Status Repair::go_on(check::Report& report) {
  unsigned rounds = 0;
  const bool hopeless = report.problems.count(Code::device_too_small) > 0;
  while (!hopeless) {
    report.needs_recovery |= log_is_lost(report);
    if (needs_work(report) || report.needs_recovery) {
      if (rounds++ == kMostRounds) break;
      TRY(round(report));
    } else if (!report.super.clean && !outcome_.actions.empty()) {
      TRY(recover_(device_, Tolerance::nothing));  // gives up snapshots, too, which may bring more to light
    } else {
      break;
    }
    report = TRY(look(false));
  }
  if (!outcome_.actions.empty()) report = TRY(look(options_.verify_data));
  return {};
}

Result<Outcome> Repair::run() {
  check::Report report = TRY(first_look());
  outcome_.ended = go_on(report);
  if (!outcome_.ended.ok() && !changed_) return outcome_.ended.error();
  for (const check::Problem& problem : found_.kept())
    outcome_.before.problems.add(problem.code, problem.where, problem.detail);
  outcome_.after = std::move(report);
  return std::move(outcome_);
}

}  // namespace

Result<Outcome> repair(io::BlockDevice& device, const Recover& recover, const RepairOptions& options,
                       check::Progress* progress) {
  return Repair(device, recover, options, progress).run();
}

const char* remedy_of(Code code) {
  switch (code) {
    case Code::superblock_unreadable:
    case Code::superblock_damaged:
    case Code::superblocks_differ:
    case Code::superblock_torn: return "both copies are written anew";
    case Code::superblock_lost: return "a copy is found by a scan of the device";
    case Code::device_too_small: return "none: bring back the missing part, or salvage";
    case Code::image_wrong: return "a new image is written";
    case Code::run_not_free:
    case Code::runs_overlap: return "heads and chain go on in other segments";
    case Code::count_wrong:
    case Code::field_wrong: return "computed anew";
    case Code::needs_recovery:
    case Code::log_after_clean: return "the log is replayed";
    case Code::not_unmounted: return "none needed";
    case Code::log_damaged: return "the log is replayed up to the damage";
    case Code::node_unreadable:
    case Code::node_damaged:
    case Code::node_from_future:
    case Code::keys_out_of_order:
    case Code::block_sum_wrong: return "the tree is rebuilt from what is found, older copies included";
    case Code::map_node_misplaced:
    case Code::map_beyond_end: return "the map is rebuilt";
    case Code::not_compared: return "compared after the repair";
    case Code::address_outside: return "the blocks become a hole";
    case Code::claimed_twice: return "the claim wins whose checksum matches; for others a hole";
    case Code::free_map_bits_wrong:
    case Code::free_map_counter_wrong:
    case Code::free_map_record_damaged: return "the map of live blocks is corrected";
    case Code::reverse_map_wrong: return "the owner is recorded anew";
    case Code::data_unreadable:
    case Code::data_damaged: return "none: restore the file; reading the block is an error";
    case Code::no_attributes: return "attributes are made up";
    case Code::value_damaged:
    case Code::item_misplaced: return "the item is removed";
    case Code::inode_number_too_high: return "later numbers go on behind it";
    case Code::extents_overlap: return "the later one is cut";
    case Code::extent_past_end: return "the file grows to hold them";
    case Code::blocks_wrong:
    case Code::entry_count_wrong:
    case Code::link_count_wrong: return "counted anew";
    case Code::pieces_missing: return "the rest is removed";
    case Code::symlink_wrong: return "its size is corrected, or the symlink removed";
    case Code::clock_from_future: return "the clock of the block is set back";
    case Code::attributes_wrong: return "corrected";
    case Code::entry_not_indexed:
    case Code::index_without_entry: return "the name index is rebuilt";
    case Code::name_twice: return "the later entry is renamed, or removed when both are the same";
    case Code::cookie_wrong: return "the entry gets another cookie";
    case Code::entry_dangling: return "the entry is removed";
    case Code::entry_type_wrong: return "the type is corrected";
    case Code::parent_wrong: return "the directory is told where it is";
    case Code::directory_twice: return "one name is kept, others are removed";
    case Code::unconnected:
    case Code::not_in_orphans: return "moved to lost+found";
    case Code::orphan_has_links:
    case Code::orphan_missing: return "taken from the list of orphans";
    case Code::no_root: return "a root directory is made";
    case Code::snapshot_item_damaged: return "the item is removed, and what the trees tell is made anew";
    case Code::held_not_listed: return "they are listed";
    case Code::listed_not_held: return "the list is corrected";
    case Code::place_wrong: return "the one is told from the other";
    case Code::snapshot_damaged: return "none: what is whole can be read; deleting the snapshot takes the damage away";
    case Code::snapshot_tables_torn: return "what the rest of them, the trees and older copies tell is made anew";
    case Code::snapshot_lost: return "the snapshot is given up, and its space comes back";
  }
  return "none";
}

}  // namespace varve::repair
