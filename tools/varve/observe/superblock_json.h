// Superblocks as JSON.
#pragma once

#include <string>

#include "base/json_text.h"
#include "format/superblock.h"

namespace varve::tool {

Json superblock_json(const format::Superblock& super);  // everything
// What a superblock knows of what a mounted filesystem would say, in the same form.
Json superblock_status(const format::Superblock& super, const std::string& path);

Json node_ref_json(const format::NodeRef& ref);  // null for none
Json run_json(const format::Run& run);
std::string time_text(const Timestamp& time);

}  // namespace varve::tool
