#include <fmt/format.h>

#include "format/map_record.h"
#include "varve/observe/superblock_json.h"
#include "varve/rescue/dump.h"

namespace varve::tool {

namespace {

std::string group_name(std::uint8_t group) {
  if (group == format::kGroupChain) return "chain";
  if (group == format::kGroupNodes) return "nodes";
  return fmt::format("data {}", group);
}

// Record `index` of a map; empty when its leaf is absent, which means zeros.
Result<std::vector<std::byte>> map_record(ImageReader& image, const tree::MapRoot& root, std::uint64_t index) {
  std::vector<std::byte> record(root.shape.record_bytes);
  const auto leaf = TRY(tree::find_map_leaf(image.nodes(), root, index));
  if (!leaf) return record;
  const auto bytes = leaf->records().subspan(index % root.shape.per_leaf() * record.size(), record.size());
  record.assign(bytes.begin(), bytes.end());
  return record;
}

Json owner_json(const format::ReverseEntry& entry) {
  switch (entry.owner) {
    case format::Owner::file_block:
      return {{"owner", "file"},      {"inode", entry.ino.v},       {"file_block", entry.block},
              {"clock", entry.clock}, {"estimate", entry.estimate}, {"crc", fmt::format("{:08x}", entry.crc)}};
    case format::Owner::node:
      return {{"owner", "node"}, {"tree", name_of(entry.tree)}, {"level", entry.level}};
    case format::Owner::super_image:
      return {{"owner", "superblock image"}};
    case format::Owner::none:
      break;
  }
  return {{"owner", "none"}};
}

Status add_live_blocks(ImageReader& image, BlockAddr start, std::span<const std::byte> bitmap, Json& blocks) {
  const tree::MapRoot root = image.reverse_map();
  for (std::uint64_t i = 0; i < bitmap.size() * 8; ++i) {
    if (!(static_cast<unsigned>(bitmap[i / 8]) >> (i % 8) & 1)) continue;
    const auto record = TRY(map_record(image, root, (start + i).v));
    const auto entry = format::decode_reverse_entry(record);
    Json block{{"block", (start + i).v}};
    if (entry.ok())
      block.update(owner_json(*entry));
    else
      block["damaged"] = entry.error().message();
    blocks.push_back(std::move(block));
  }
  return {};
}

Result<Json> superblock_or_error(io::BlockDevice& device, Copy copy) {
  const auto super = ImageReader::read_superblock(device, copy);
  if (!super.ok()) return Json{{"damaged", super.error().message()}};
  return superblock_json(*super);
}

Json children_json(std::span<const format::ChildRef> children) {
  Json json = Json::array();
  for (const auto& child : children) {
    json.push_back({{"inode", child.first.ino.v},
                    {"kind", static_cast<unsigned>(child.first.kind)},
                    {"offset", child.first.offset}});
    json.back().update(node_ref_json(child.ref));
  }
  return json;
}

Status add_content(std::span<const std::byte> block, const format::NodeHeader& header, Json& json) {
  if (header.tree == format::TreeId::super_image) {
    json["superblock"] = superblock_json(TRY(format::decode_super_image(block)));
  } else if (!format::is_item_tree(header.tree)) {
    if (header.level == 0) return {};
    Json slots = Json::array();
    std::uint64_t slot = 0;
    for (const auto& ref : TRY(format::decode_map_slots(block, header))) {
      if (ref) {
        slots.push_back({{"slot", slot}});
        slots.back().update(node_ref_json(ref));
      }
      ++slot;
    }
    json["slots"] = std::move(slots);
  } else if (header.level > 0) {
    json["children"] = children_json(TRY(format::decode_children(block, header)));
  } else {
    Json items = Json::array();
    for (const auto& item : TRY(format::decode_items(block, header))) items.push_back(item_json(item.key, item.value));
    json["items"] = std::move(items);
  }
  return {};
}

}  // namespace

Result<Json> dump_superblocks(const std::string& path) {
  const auto device = TRY(ImageReader::open_device(path));
  Json both;
  both["first"] = TRY(superblock_or_error(*device, Copy::first));
  both["second"] = TRY(superblock_or_error(*device, Copy::second));
  return both;
}

Result<Json> dump_segment(ImageReader& image, std::uint64_t segment) {
  const format::Superblock& super = image.super();
  if (segment >= super.segments)
    return Error(Errc::invalid, fmt::format("segment {}: there are {}", segment, super.segments));
  const auto bytes = TRY(map_record(image, image.free_map(), segment));
  const auto record = TRY(format::decode_segment_record(bytes));
  const BlockAddr start = super.first_segment + segment * super.segment_blocks;
  Json blocks = Json::array();
  TRY(add_live_blocks(image, start, std::span(bytes).subspan(format::kSegmentRecordHeaderBytes), blocks));
  return Json{{"segment", segment},
              {"as_of", "the last checkpoint"},
              {"first_block", start.v},
              {"blocks", super.segment_blocks},
              {"live", record.live},
              {"group", group_name(record.group)},
              {"bad_blocks", (record.flags & format::kSegmentHasBadBlocks) != 0},
              {"youngest", record.youngest},
              {"clock_sum", record.clock_sum},
              {"rate_sum", record.rate_sum},
              {"live_blocks", std::move(blocks)}};
}

Result<Json> dump_node(ImageReader& image, BlockAddr address) {
  const AlignedBuffer block = TRY(image.read_blocks(address, 1));
  const auto header = TRY(format::decode_node_header(block.span()));
  Json json{{"address", header.address.v},
            {"tree", name_of(header.tree)},
            {"level", header.level},
            {"serial", header.serial.v},
            {"identity", fmt::format("{:016x}", header.identity)},
            {"count", header.count},
            {"used_bytes", header.used},
            {"first_key",
             {{"inode", header.first.ino.v},
              {"kind", static_cast<unsigned>(header.first.kind)},
              {"offset", header.first.offset}}},
            {"crc", fmt::format("{:08x}", format::block_crc(block.span()))}};
  TRY(add_content(block.span(), header, json));
  return json;
}

}  // namespace varve::tool
