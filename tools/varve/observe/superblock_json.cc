#include "varve/observe/superblock_json.h"

#include <fmt/format.h>

#include <ctime>

#include "control/status_json.h"

namespace varve::tool {

namespace {

Json heads_json(const format::Superblock& super) {
  Json heads = Json::array();
  for (std::size_t group = 0; group < super.heads.size(); ++group)
    if (super.heads[group].rest.start) heads.push_back({{"group", group}, {"rest", run_json(super.heads[group].rest)}});
  return heads;
}

Json area_json(const format::Superblock& super) {
  if (!super.area) return nullptr;
  return {{"start", super.area.start.v}, {"slots", super.area.slots}, {"slot_blocks", super.area.slot_blocks},
          {"sequence", super.sequence}};
}

double write_cost(const format::LifetimeCounters& counters) {
  if (counters.user_blocks == 0) return 0;
  const auto all = counters.user_blocks + counters.cleaned_blocks + counters.node_blocks + counters.chain_blocks;
  return static_cast<double>(all) / static_cast<double>(counters.user_blocks);
}

}  // namespace

std::string time_text(const Timestamp& time) {
  const std::time_t seconds = time.seconds;
  std::tm parts{};
  char text[64] = "";
  if (!::gmtime_r(&seconds, &parts) || !std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts))
    return fmt::format("{}.{:09} since 1970", time.seconds, time.nanoseconds);
  return fmt::format("{}.{:09} UTC", text, time.nanoseconds);
}

Json node_ref_json(const format::NodeRef& ref) {
  if (!ref) return nullptr;
  Json json{{"address", ref.address.v}, {"crc", fmt::format("{:08x}", ref.crc)}};
  if (ref.blocks) json["blocks"] = ref.blocks;
  return json;
}

Json run_json(const format::Run& run) { return {{"start", run.start.v}, {"blocks", run.blocks}}; }

static Json snapshots_json(const format::SnapshotTables& t) {
  return {{"root", node_ref_json(t.root)}, {"level", t.level},         {"snapshots", t.snapshots},       {"held_blocks", t.held_blocks},
          {"held_data", t.held_data},      {"places", t.places},       {"shared_nodes", t.shared_nodes}};
}

// As a mount tells it.
static Json scrub_json(const format::ScrubMark& mark) {
  return {{"state", !mark.started ? "never" : mark.finished ? "finished" : "stopped"},
          {"started", mark.started},
          {"finished", mark.finished},
          {"verified_blocks", mark.blocks},
          {"errors", mark.errors}};
}

Json superblock_json(const format::Superblock& s) {
  return {{"version", s.version},
          {"features",
           {{"compat", s.features.compat}, {"ro_compat", s.features.ro_compat}, {"incompat", s.features.incompat}}},
          {"uuid", format::uuid_text(s.uuid)},
          {"label", s.label},
          {"identity", fmt::format("{:016x}", s.identity)},
          {"made", time_text(s.made)},
          {"device_blocks", s.device_blocks},
          {"segment_blocks", s.segment_blocks},
          {"segments", s.segments},
          {"first_segment", s.first_segment.v},
          {"area", area_json(s)},
          {"device", control::to_json(s.device)},
          {"tails", {{"kept", s.tails.kept}, {"logged", s.tails.logged}}},
          {"clean", s.clean},
          {"serial", s.serial.v},
          {"lsn", s.lsn.v},
          {"chain_crc", fmt::format("{:08x}", s.chain_crc)},
          {"chain", run_json(s.chain)},
          {"next_run", run_json(s.next_run)},
          {"clock", s.clock},
          {"clock_unit", s.clock_unit},
          {"next_ino", s.next_ino},
          {"inode_file", node_ref_json(s.inode_file)},
          {"inode_file_level", s.inode_file_level},
          {"reverse_map", node_ref_json(s.reverse_map)},
          {"free_map", node_ref_json(s.free_map)},
          {"image", node_ref_json(s.image)},
          {"heads", heads_json(s)},
          {"node_head", run_json(s.node_head.rest)},
          {"live_blocks", s.live_blocks},
          {"data_blocks", s.data_blocks},
          {"reserved_blocks", s.reserved_blocks},
          {"inodes", s.inodes},
          {"snapshots", snapshots_json(s.snapshots)},
          {"lifetime", control::to_json(s.lifetime)},
          {"first_error", control::to_json(s.first_error)},
          {"last_error", control::to_json(s.last_error)}};
}

Json superblock_status(const format::Superblock& s, const std::string& path) {
  return {{"device", path},
          {"label", s.label},
          {"uuid", format::uuid_text(s.uuid)},
          {"state", s.clean ? "not mounted, clean" : "not mounted, to be recovered by the next mount"},
          {"clean", s.clean},
          {"space",
           {{"block_bytes", kBlockSize},
            {"device_blocks", s.device_blocks},
            {"live_blocks", s.live_blocks},
            {"segment_blocks", s.segment_blocks},
            {"segments", {{"total", s.segments}}}}},
          {"log", {{"lsn", s.lsn.v}, {"serial", s.serial.v}, {"lifetime_write_cost", write_cost(s.lifetime)}}},
          {"device_profile", control::to_json(s.device)},
          {"scrub", scrub_json(s.scrub)},
          {"lifetime", control::to_json(s.lifetime)},
          {"first_error", control::to_json(s.first_error)},
          {"last_error", control::to_json(s.last_error)}};
}

}  // namespace varve::tool
