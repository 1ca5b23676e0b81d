#include "fuse/history_json.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const cleaner::PastRound& round) {
  return {{"round", round.number},       {"log_clock", round.clock},     {"strategy", round.strategy},
          {"policy", round.victims},     {"placement", round.placement}, {"waited_for", round.waited_for},
          {"clean_segments", round.clean}, {"utilisation", round.utilisation}, {"emptied_segments", round.emptied},
          {"read_blocks", round.read},   {"written_blocks", round.written}};
}

nlohmann::ordered_json to_json(const std::vector<cleaner::PastRound>& rounds) {
  auto json = nlohmann::ordered_json::array();
  for (const cleaner::PastRound& round : rounds) json.push_back(to_json(round));
  return json;
}

}  // namespace varve::fuse
