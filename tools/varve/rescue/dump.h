// Structures of an unmounted filesystem as JSON, one function each; dump_text shows any of them.
#pragma once

#include <functional>
#include <string>

#include "base/json_text.h"
#include "format/record.h"
#include "varve/volume/image_reader.h"

namespace varve::tool {

Result<Json> dump_superblocks(const std::string& path);  // both copies, also when they are damaged
Result<Json> dump_segment(ImageReader& image, std::uint64_t segment);
Result<Json> dump_chunk(ImageReader& image, BlockAddr address);
// Asked before each part with the number of those before it; an error ends it.
using EachPart = std::function<Status(std::uint64_t)>;
Result<Json> dump_chain(ImageReader& image, const EachPart& each);  // what a recovery would replay
Result<Json> dump_node(ImageReader& image, BlockAddr address);
Result<Json> dump_inode(ImageReader& image, Ino ino, const EachPart& each);
Result<Json> dump_directory(ImageReader& image, Ino ino, const EachPart& each);

Json item_json(const format::Key& key, std::span<const std::byte> value);  // one item of the inode file
Json record_json(const format::Record& record);

std::string dump_text(const Json& json);

}  // namespace varve::tool
