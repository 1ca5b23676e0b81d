// Structures of an unmounted filesystem as JSON, one function each; dump_text shows any of them.
#pragma once

#include <string>

#include "base/json_text.h"
#include "format/record.h"
#include "varve/image_reader.h"

namespace varve::tool {

Result<Json> dump_superblocks(const std::string& path);  // both copies, also when they are damaged
Result<Json> dump_segment(ImageReader& image, std::uint64_t segment);
Result<Json> dump_chunk(ImageReader& image, BlockAddr address);
Result<Json> dump_chain(ImageReader& image);  // what a recovery would replay
Result<Json> dump_node(ImageReader& image, BlockAddr address);
Result<Json> dump_inode(ImageReader& image, Ino ino);
Result<Json> dump_directory(ImageReader& image, Ino ino);

Json item_json(const format::Key& key, std::span<const std::byte> value);  // one item of the inode file
Json record_json(const format::Record& record);

std::string ascii_text(std::string_view bytes);  // what is not text becomes \xhh
std::string dump_text(const Json& json);

}  // namespace varve::tool
