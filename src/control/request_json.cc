#include "control/request_json.h"

#include "base/types.h"

namespace varve::control {

namespace {

Json limit_json(std::uint64_t blocks) { return blocks == jobs::CleanRequest::kNoLimit ? Json(nullptr) : Json(blocks); }

std::uint64_t limit_from(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : jobs::CleanRequest::kNoLimit;
}

Json layout_json(const jobs::CleanState::Layout& layout) {
  return {{"clean_segments", layout.clean},
          {"used_segments", layout.used},
          {"garbage_blocks", layout.garbage},
          {"open_segments", layout.open},
          {"end_segment", layout.end}};
}

Json files_json(const cleaner::FileCounts& files) {
  return {{"seen", files.seen},
          {"moved", files.moved},
          {"unreadable", files.unreadable},
          {"unreadable_directories", files.unreadable_directories},
          {"fragments_before", files.fragments_before},
          {"fragments_after", files.fragments_after}};
}

Json forecast_json(const cleaner::Forecast& forecast) {
  Json json{{"what", forecast.what},
            {"segments", forecast.segments},
            {"read_blocks", forecast.reads},
            {"written_blocks", forecast.writes},
            {"freed_blocks", forecast.frees}};
  if (forecast.files.seen) json["files"] = files_json(forecast.files);
  return json;
}

}  // namespace

Json to_json(const jobs::CleanRequest& request) {
  Json roots = Json::array();
  for (Ino root : request.roots) roots.push_back(root.v);
  return {{"strategy", request.strategy},
          {"policy", request.policy},
          {"placement", request.placement},
          {"free_blocks", limit_json(request.free_blocks)},
          {"move_blocks", limit_json(request.move_blocks)},
          {"roots", std::move(roots)},
          {"dry_run", request.dry_run}};
}

Result<jobs::CleanRequest> clean_request_from(const Json& json) {
  if (!json.is_object()) return Error(Errc::invalid, "not a request to clean");
  auto words = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  jobs::CleanRequest request;
  request.strategy = words("strategy");
  request.policy = words("policy");
  request.placement = words("placement");
  request.free_blocks = limit_from(json, "free_blocks");
  request.move_blocks = limit_from(json, "move_blocks");
  request.dry_run = json.contains("dry_run") && json["dry_run"] == true;
  if (const auto roots = json.find("roots"); roots != json.end() && roots->is_array())
    for (const Json& root : *roots) {
      if (!root.is_number_unsigned() || root.get<std::uint64_t>() == 0) return Error(Errc::invalid, "no inode's number");
      request.roots.push_back(Ino{root.get<std::uint64_t>()});
    }
  return request;
}

Json to_json(const jobs::CleanState& state) {
  Json json{{"state", name_of(state.phase)}, {"reason", state.reason}, {"doing", state.doing}};
  if (state.phase == jobs::CleanState::Phase::never) return json;
  json["request"] = to_json(state.request);
  json["seconds"] = state.seconds;
  json["segment_blocks"] = state.segment_blocks;
  json["segments"] = state.segments;
  if (state.request.dry_run) {
    json["forecast"] = forecast_json(state.forecast);
    return json;
  }
  json["rounds"] = state.rounds;
  json["read_blocks"] = state.read;
  json["written_blocks"] = state.written;
  json["metadata_blocks"] = state.nodes;
  json["emptied_segments"] = state.emptied;
  json["before"] = layout_json(state.before);
  json["now"] = layout_json(state.now);
  json["left_at_first"] = state.left_at_first;
  json["left"] = state.left;
  if (state.files.seen) json["files"] = files_json(state.files);
  return json;
}

Json to_json(const cleaner::PastRound& round) {
  return {{"round", round.number},       {"log_clock", round.clock},     {"strategy", round.strategy},
          {"policy", round.victims},     {"placement", round.placement}, {"waited_for", round.waited_for},
          {"clean_segments", round.clean}, {"utilisation", round.utilisation}, {"emptied_segments", round.emptied},
          {"read_blocks", round.read},   {"written_blocks", round.written}};
}

Json to_json(const std::vector<cleaner::PastRound>& rounds) {
  auto json = Json::array();
  for (const cleaner::PastRound& round : rounds) json.push_back(to_json(round));
  return json;
}

Json to_json(const jobs::ResizeState& state) {
  Json json{{"state", name_of(state.phase)},
                              {"reason", state.reason},
                              {"doing", state.doing},
                              {"bytes", state.blocks << kBlockShift},
                              {"device_bytes", state.device_blocks << kBlockShift},
                              {"least_bytes", state.least_blocks << kBlockShift},
                              {"segment_bytes", state.segment_blocks << kBlockShift}};
  if (state.phase == jobs::ResizeState::Phase::never) return json;
  json["from_bytes"] = state.from << kBlockShift;
  json["to_bytes"] = state.to << kBlockShift;
  json["rounds"] = state.rounds;
  json["moved_bytes"] = state.moved << kBlockShift;
  json["left_bytes_at_first"] = state.left_at_first << kBlockShift;
  json["left_bytes"] = state.left << kBlockShift;
  json["stuck_segments"] = state.stuck;
  json["seconds"] = state.seconds;
  return json;
}

Json to_json(const fs::SnapshotState& state) {
  auto list = Json::array();
  for (const fs::SnapshotFacts& snapshot : state.snapshots)
    list.push_back({{"name", snapshot.name},
                    {"automatic", snapshot.automatic},
                    {"serial", snapshot.serial},
                    {"made", snapshot.made.seconds},
                    {"inodes", snapshot.inodes},
                    {"data_bytes", snapshot.data_blocks << kBlockShift},
                    {"alone_bytes", snapshot.alone_blocks << kBlockShift}});
  Json json = Json::object();
  json["data_bytes"] = state.data_blocks << kBlockShift;
  json["held_bytes"] = state.held_blocks << kBlockShift;
  json["automatic_bytes"] = state.automatic_blocks << kBlockShift;
  json["giving_back"] = state.giving_back;
  json["snapshots"] = std::move(list);
  return json;
}

}  // namespace varve::control
