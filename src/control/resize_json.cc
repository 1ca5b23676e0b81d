#include "control/resize_json.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::ResizeRequest& request) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["bytes"] = request.bytes;
  return json;
}

Result<fs::ResizeRequest> resize_request_from(std::string_view text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  const bool is_one = json.is_object() && json.contains("bytes") && json["bytes"].is_number_unsigned();
  if (!is_one) return Error(Errc::invalid, "not a request for a size");
  return fs::ResizeRequest{json["bytes"].get<std::uint64_t>()};
}

nlohmann::ordered_json to_json(const fs::ResizeState& state) {
  nlohmann::ordered_json json{{"state", name_of(state.phase)},
                              {"reason", state.reason},
                              {"doing", state.doing},
                              {"bytes", state.blocks << kBlockShift},
                              {"device_bytes", state.device_blocks << kBlockShift},
                              {"least_bytes", state.least_blocks << kBlockShift},
                              {"segment_bytes", state.segment_blocks << kBlockShift}};
  if (state.phase == fs::ResizeState::Phase::never) return json;
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

}  // namespace varve::fuse
