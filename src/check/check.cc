#include "check/check.h"

#include "base/types.h"
#include "check/inode_pass.h"
#include "check/kept_trees.h"
#include "check/maps.h"
#include "check/superblocks.h"
#include "format/image_mark.h"

namespace varve::check {

namespace {

struct Maps {
  MapWalk reverse;
  MapWalk free;

  explicit Maps(Context& context)
      : reverse(context, format::TreeId::reverse_map, context.super().reverse_map,
                format::reverse_map_shape(context.super().device_blocks)),
        free(context, format::TreeId::free_map, context.super().free_map,
             format::free_map_shape(context.super().segments, context.super().segment_blocks)) {}
};

// The trees as a second pass over them needs it: silent, and nothing but owners.
void claim_again(Context& context, Claims& claims) {
  Report scratch;
  scratch.super = context.super();
  Context silent{context.device, context.options, nullptr, scratch};
  ExtentClaimer claimer(claims);
  if (context.super().snapshots.root) claims.keep_tags();
  TreeWalk(silent, claims, claimer, newest_inode_file(silent.super())).run();
  Maps maps(silent);
  maps.reverse.claim_nodes(claims);
  maps.free.claim_nodes(claims);
  check_image(silent, claims);
  KeptTrees(silent).claim(claims, nullptr);
}

// Everything that compares sums over the whole filesystem.
void compare_all(Context& context, const Claims& claims, Maps& maps, Namespace& names) {
  const ClaimAgain again = [&](Claims& fresh) { claim_again(context, fresh); };
  report_conflicts(context, claims, again);
  if (!context.incomplete) check_free_map(context, claims, maps.free);
  if (!context.incomplete) check_reverse_map(context, claims, maps.reverse, again);
  check_runs(context, claims);
  if (!context.incomplete) check_counts(context, claims);
  if (!context.incomplete) check_links(context, names);
  if (context.incomplete) context.add(Code::not_compared, {});
}

void check_trees(Context& context) {
  Claims claims(context.super());
  if (context.super().snapshots.root) claims.keep_tags();
  Namespace names;
  names.expect(context);
  DataVerifier verifier(context);
  InodePass pass(context, claims, names, context.verifies_data ? &verifier : nullptr);
  TreeWalk(context, claims, pass, newest_inode_file(context.super())).run();
  pass.finish();
  Maps maps(context);
  maps.reverse.claim_nodes(claims);
  maps.free.claim_nodes(claims);
  check_image(context, claims);
  KeptTrees kept(context);
  kept.claim(claims, context.verifies_data ? &verifier : nullptr);
  compare_all(context, claims, maps, names);
  if (!context.incomplete) kept.check_tables(claims);
  Statistics& statistics = context.report.statistics;
  statistics.held_blocks = context.held_blocks;
  statistics.data_blocks = claims.data() - context.held_data;
  statistics.node_blocks = claims.live() - claims.data() - (context.held_blocks - context.held_data);
}

Status allow_memory(const CheckOptions& options, const format::Superblock& super) {
  const std::uint64_t needed = memory_for(super);
  if (options.memory_bytes == 0 || options.memory_bytes >= needed) return {};
  return Error(Errc::no_memory, fmt::format("the check takes up to {} MiB, for {} inodes and {} blocks: more than the {} MiB allowed",
                                            (needed + kMiB - 1) / kMiB, super.inodes, super.device_blocks, options.memory_bytes / kMiB));
}

}  // namespace

// Damage that was met before is not gone because the last unmount went well.
bool met_errors(const format::Superblock& super) {
  return super.lifetime.errors > 0 && super.scrub.verified() <= super.last_error.when.seconds;
}

std::uint64_t memory_for(const format::Superblock& super) {
  constexpr std::uint64_t kProcess = 20u << 20, kNamesPerInode = 1;
  const std::uint64_t blocks = super.device_blocks / 8 + super.device_blocks / 168 * 8 + super.segments * 32 +
                               (super.snapshots.root ? super.device_blocks / 8 * 17 + 200 * super.snapshots.places : 0);
  return kProcess + blocks + super.inodes * (sizeof(InodeFacts) + kNamesPerInode * sizeof(NameEdge));
}

Result<Report> check(io::BlockDevice& device, const CheckOptions& options, Progress* progress) {
  Report report;
  report.super = TRY(choose_superblock(device, report.problems));
  TRY(format::check_features(report.super, format::Intent::read));
  TRY(allow_memory(options, report.super));
  Context context{device, options, progress, report};
  probe_log(context);
  if (report.super.device_blocks > device.geometry().blocks()) {  // what it refers to is not there
    if (report.problems.count(Code::device_too_small) == 0) report.problems.add(Code::device_too_small, {});
    return report;
  }
  if (format::is_image(report.super)) context.verifies_data = false;  // none is there
  const bool looks_well = report.super.clean && report.errors() == 0 && report.warnings() == 0;
  report.quick = options.skip_when_clean && looks_well && !met_errors(report.super);
  if (!report.quick) check_trees(context);
  return report;
}

}  // namespace varve::check
