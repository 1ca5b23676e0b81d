#include "control/snapshot_json.h"

#include "base/types.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::SnapshotState& state) {
  auto list = nlohmann::ordered_json::array();
  for (const fs::SnapshotFacts& snapshot : state.snapshots)
    list.push_back({{"name", snapshot.name},
                    {"automatic", snapshot.automatic},
                    {"serial", snapshot.serial},
                    {"made", snapshot.made.seconds},
                    {"inodes", snapshot.inodes},
                    {"data_bytes", snapshot.data_blocks << kBlockShift},
                    {"alone_bytes", snapshot.alone_blocks << kBlockShift}});
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["held_bytes"] = state.held_blocks << kBlockShift;
  json["automatic_bytes"] = state.automatic_blocks << kBlockShift;
  json["giving_back"] = state.giving_back;
  json["snapshots"] = std::move(list);
  return json;
}

}  // namespace varve::fuse
