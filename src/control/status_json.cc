#include "control/status_json.h"

#include "base/errc.h"
#include "format/map_record.h"

namespace varve::control {

namespace {

// Segments by the head that filled them.
Json groups_json(const fs::FilesystemStatus& s) {
  Json groups = Json::array();
  for (const fs::GroupCounts& group : s.groups) {
    const Json name = group.group == format::kGroupChain   ? Json("log")
                      : group.group == format::kGroupNodes ? Json("metadata")
                                                           : Json(group.group);
    groups.push_back({{"group", name}, {"segments", group.segments}, {"live_blocks", group.live_blocks}, {"open", group.open}});
  }
  return groups;
}

Json space_json(const fs::FilesystemStatus& s) {
  return {{"block_bytes", kBlockSize},
          {"device_blocks", s.device_blocks},
          {"live_blocks", s.live_blocks},
          {"garbage_blocks", s.garbage_blocks},
          {"reserve_blocks", s.reserve_blocks},
          {"reclaimable_blocks", s.reclaimable_blocks},
          {"charged_blocks", s.charged_blocks},
          {"available_blocks", s.available_blocks},
          {"segment_blocks", s.segment_blocks},
          {"segments",
           {{"total", s.segments.total},
            {"clean", s.segments.clean},
            {"open", s.segments.open},
            {"refilling", s.segments.refilling},
            {"empty", s.segments.empty},
            {"used", s.segments.used}}},
          {"utilisation", s.utilisation},
          {"groups", groups_json(s)}};
}

Json log_json(const fs::FilesystemStatus& s) {
  return {{"lsn", s.lsn},
          {"durable_lsn", s.durable_lsn},
          {"chunks", s.chunks},
          {"flushes", s.flushes},
          {"pending_bytes", s.pending_bytes},
          {"log_bytes_since_checkpoint", s.log_bytes_since_checkpoint},
          {"delta_records", s.delta_records},
          {"delta_bytes", s.delta_bytes},
          {"serial", s.serial},
          {"checkpoints", s.checkpoints},
          {"checkpoint_running", s.checkpoint_running},
          {"replayed_chunks", s.replayed_chunks}};
}

Json traffic_json(const fs::FilesystemStatus& s) {
  return {{"user_blocks_written", s.user_blocks_written},
          {"data_blocks_written", s.data_blocks_written},
          {"chain_blocks_written", s.chain_blocks_written},
          {"node_blocks_written", s.node_blocks_written},
          {"cleaned_blocks_written", s.cleaned_blocks_written},
          {"refilled_blocks_written", s.refilled_blocks_written},
          {"cleaned_blocks_read", s.cleaned_blocks_read},
          {"device_bytes_written", s.device_bytes_written},
          {"device_bytes_read", s.device_bytes_read},
          {"device_writes", s.device_writes},
          {"device_reads", s.device_reads},
          {"device_read_errors", s.device_read_errors},
          {"device_write_errors", s.device_write_errors},
          {"write_cost", s.write_cost},
          {"lifetime_write_cost", s.lifetime_write_cost}};
}

Json cleaner_json(const fs::FilesystemStatus& s) {
  return {{"running", s.cleaner_running},
          {"state", s.cleaner_state},
          {"strategy", s.strategy},
          {"decision", s.strategy_explanation},
          {"victim_policy", s.victim_policy},
          {"placement", s.placement},
          {"segments_cleaned", s.segments_cleaned},
          {"pinned_segments", s.pinned_segments},
          {"pinned_garbage_blocks", s.pinned_garbage_blocks}};
}

Json finding_json(const scrub::Finding& finding) {
  Json json{{"kind", name_of(finding.kind)}, {"block", finding.address.v}, {"error", finding.error}};
  if (finding.kind == scrub::Finding::Kind::data) {
    json["inode"] = finding.ino.v;
    json["offset"] = finding.file_block << kBlockShift;
    json["bytes"] = finding.blocks << kBlockShift;
  }
  if (finding.kind == scrub::Finding::Kind::node) {
    json["tree"] = name_of(finding.tree);
    json["level"] = finding.level;
    if (finding.tree == format::TreeId::inode_file && finding.first != finding.bound) {
      json["first_inode"] = finding.first.ino.v;
      json["last_inode"] = finding.bound.ino.v;
    }
  }
  if (finding.is_in_snapshot()) {
    json["snapshot"] = finding.snapshot;
    json["snapshot_serial"] = finding.snapshot_serial.v;
    json["snapshots"] = finding.snapshots;
  }
  return json;
}

// Without the findings, for the status of the whole mount.
Json scrub_json(const scrub::State& state) {
  return {{"state", name_of(state.phase)},
          {"reason", state.reason},
          {"started", state.started},
          {"finished", state.finished},
          {"bytes_per_second", state.bytes_per_second},
          {"verified_blocks", state.blocks},
          {"live_blocks", state.blocks_all},
          {"errors", state.errors},
          {"snapshot_errors", state.snapshot_errors}};
}

Json waits_json(const fs::WaitCounts& counts) {
  Json json;
  for (std::size_t i = 0; i < counts.size(); ++i)
    json[name_of(static_cast<fs::WaitCause>(i))] = {{"times", counts[i].times},
                                                    {"total_us", counts[i].total_ns / 1000},
                                                    {"longest_us", counts[i].longest_ns / 1000}};
  return json;
}

Json protection_json(const fs::FilesystemStatus& s) {
  Json rules = Json::array();
  for (const auto& [age, spacing] : s.protection.rules) rules.push_back({{"age_seconds", age}, {"spacing_seconds", spacing}});
  return {{"on", s.protection.is_on()},
          {"seconds", s.protection.is_on() ? s.protection.window_s : 0},
          {"every_seconds", s.protection.interval_s()},
          {"protect", s.protection.window_text()},
          {"rules", rules},
          {"kept_by_rule", s.snapshots.kept_by_rule},
          {"oldest_seconds", s.snapshots.oldest_automatic_s},
          {"snapshots", s.snapshots.automatic},
          {"held_bytes", s.snapshots.loose_blocks << kBlockShift},
          {"given_up", s.snapshots.given_up}};
}

Json faults_json(const device::FaultCounts& faults) {
  return {{"unreadable", faults.unreadable},
          {"damaged", faults.damaged},
          {"other", faults.other},
          {"places_last_hour", faults.places_last_hour},
          {"places_last_day", faults.places_last_day}};
}

Json memory_json(const fs::FilesystemStatus& s) {
  return {{"node_cache_bytes", s.node_cache_bytes},
          {"node_cache_hits", s.node_cache_hits},
          {"node_cache_misses", s.node_cache_misses},
          {"inodes_cached", s.inodes_cached},
          {"references", s.references},
          {"memory_limit_bytes", s.memory_limit_bytes}};
}

}  // namespace

Json to_json(const format::LifetimeCounters& counters) {
  return {{"user_blocks", counters.user_blocks},
          {"cleaned_blocks", counters.cleaned_blocks},
          {"node_blocks", counters.node_blocks},
          {"chain_blocks", counters.chain_blocks},
          {"device_bytes", counters.device_bytes},
          {"checkpoints", counters.checkpoints},
          {"mounts", counters.mounts},
          {"recoveries", counters.recoveries},
          {"segments_cleaned", counters.segments_cleaned},
          {"errors", counters.errors}};
}

Json to_json(const format::ErrorEvent& event) {
  if (event.code == 0) return nullptr;
  return {{"seconds", event.when.seconds},
          {"error",
           event.code <= static_cast<std::uint32_t>(Errc::shut_down) ? name_of(static_cast<Errc>(event.code)) : "?"},
          {"block", event.address.v},
          {"inode", event.ino.v}};
}

Json to_json(const scrub::State& state) {
  Json json = scrub_json(state);
  auto& findings = json["findings"] = Json::array();
  for (const scrub::Finding& finding : state.findings) findings.push_back(finding_json(finding));
  return json;
}

Json to_json(const format::DeviceProfile& device) {
  return {{"erase_unit", device.erase_blocks * kBlockSize}, {"erase_unit_is", name_of(device.erase_source)},
          {"streams", device.streams}, {"streams_are", name_of(device.streams_source)}};
}

Json to_json(const fs::FilesystemStatus& s) {
  return {{"device", s.device},
          {"backend", s.backend},
          {"label", s.label},
          {"uuid", s.uuid},
          {"read_only", s.read_only},
          {"read_only_reason", s.read_only_reason},
          {"uptime_seconds", s.uptime_seconds},
          {"snapshot", s.snapshot},
          {"space", space_json(s)},
          {"snapshots",
           {{"count", s.snapshots.count},
            {"held_bytes", s.snapshots.held_blocks << kBlockShift},
            {"giving_back", s.snapshots.giving_back},
            {"damage", s.snapshots.damage}}},
          {"protection", protection_json(s)},
          {"log", log_json(s)},
          {"device_profile", to_json(s.device_profile)},
          {"traffic", traffic_json(s)},
          {"cleaner", cleaner_json(s)},
          {"waits", waits_json(s.waits)},
          {"scrub", scrub_json(s.scrub)},
          {"memory", memory_json(s)},
          {"lifetime", to_json(s.lifetime)},
          {"first_error", to_json(s.first_error)},
          {"last_error", to_json(s.last_error)},
          {"faults", faults_json(s.faults)}};
}

}  // namespace varve::control
