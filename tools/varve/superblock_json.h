// Superblocks as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "format/superblock.h"

namespace varve::tool {

nlohmann::ordered_json superblock_json(const format::Superblock& super);  // everything
// What a superblock knows of what a mounted filesystem would say, in the same form.
nlohmann::ordered_json superblock_status(const format::Superblock& super, const std::string& path);

nlohmann::ordered_json node_ref_json(const format::NodeRef& ref);  // null for none
nlohmann::ordered_json run_json(const format::Run& run);
std::string time_text(const Timestamp& time);

}  // namespace varve::tool
