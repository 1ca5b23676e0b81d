#include "format/node.h"

#include "base/invariant.h"
#include "format/codec.h"
#include "format/damaged_node.h"
#include "format/node_block.h"

namespace varve::format {

namespace {

constexpr std::size_t kNodeCrcAt = 4;

struct ParsedNode {
  std::uint32_t crc = 0;
  NodeHeader header;
};

// Everything but the CRC, which the two public readers treat differently.
Result<ParsedNode> parse_node(std::span<const std::byte> block) {
  if (block.size() < kBlockSize) return corrupt("node: only {} bytes of a block", block.size());
  Reader in(block.first(kNodeHeaderBytes));
  if (in.u32() != kNodeMagic) return corrupt("node: no magic, this is not a tree node");
  ParsedNode raw;
  raw.crc = in.u32();
  NodeHeader& h = raw.header;
  h.identity = in.u64();
  h.serial = Serial{in.u64()};
  h.address = BlockAddr{in.u48()};
  h.tree = static_cast<TreeId>(in.u8());
  h.level = in.u8();
  h.count = in.u16();
  h.used = in.u16();
  h.first.ino = Ino{in.u64()};
  h.first.kind = static_cast<ItemKind>(in.u8());
  h.first.offset = in.u64();
  return raw;
}

Status check_ranges(const NodeHeader& h) {
  if (h.tree < TreeId::inode_file || h.tree > TreeId::snapshots)
    return corrupt("node at block {}: unknown tree {}", h.address, static_cast<unsigned>(h.tree));
  if (h.level > kMaxTreeLevel) return corrupt("node at block {}: impossible level {}", h.address, h.level);
  if (h.used > kNodePayloadBytes) return corrupt("node at block {}: {} bytes used of 4032", h.address, h.used);
  if (h.count > h.used) return corrupt("node at block {}: {} entries in {} bytes", h.address, h.count, h.used);
  if (!h.address) return corrupt("node: claims to stand at block 0");
  if (is_item_tree(h.tree) && h.count == 0) return corrupt("node at block {}: empty", h.address);
  return {};
}

}  // namespace

const char* name_of(TreeId tree) {
  switch (tree) {
    case TreeId::inode_file: return ".ifile";
    case TreeId::reverse_map: return ".mfile";
    case TreeId::free_map: return ".ffile";
    case TreeId::super_image: return "superblock image";
    case TreeId::snapshots: return ".sfile";
  }
  return "unknown";
}

std::uint32_t block_crc(std::span<const std::byte> block) { return crc32c(block.first(kBlockSize)); }

std::uint32_t write_node(std::span<std::byte> block, const NodeHeader& h, std::span<const std::byte> payload) {
  block = block.first(kBlockSize);
  Writer out(block);
  out.put(kNodeMagic);
  out.put(std::uint32_t{0});
  out.put(h.identity);
  out.put(h.serial.v);
  out.put48(h.address.v);
  out.put(static_cast<std::uint8_t>(h.tree));
  out.put(h.level);
  out.put(h.count);
  out.put(h.used);
  out.put(h.first.ino.v);
  out.put(static_cast<std::uint8_t>(h.first.kind));
  out.put(h.first.offset);
  out.skip_to(kNodeHeaderBytes);
  out.put_bytes(payload);
  out.skip_to(kBlockSize);
  INVARIANT(out.ok());
  store32(block, kNodeCrcAt, crc32c(block));
  return block_crc(block);
}

Result<NodeHeader> decode_node_header(std::span<const std::byte> block) {
  const ParsedNode raw = TRY(parse_node(block));
  if (crc_without_field(block.first(kBlockSize), kNodeCrcAt) != raw.crc)
    return corrupt("node that says block {}: own CRC does not match its bytes", raw.header.address);
  TRY(check_ranges(raw.header));
  return raw.header;
}

Key unproven_first_key(std::span<const std::byte> block) {
  const auto raw = parse_node(block);
  return raw.ok() ? raw->header.first : kMinKey;
}

Result<NodeHeader> check_node(std::span<const std::byte> block, const NodeExpectation& expected) {
  const char* tree = name_of(expected.tree);
  const auto parsed = parse_node(block);
  if (!parsed.ok()) return corrupt("{} node at block {}: {}", tree, expected.address, parsed.error().message());
  const NodeHeader& h = parsed->header;
  if (block_crc(block) != expected.crc) {
    const bool whole = crc_without_field(block.first(kBlockSize), kNodeCrcAt) == parsed->crc;
    return corrupt("{} node at block {}: {}", tree, expected.address,
                   whole ? "an intact node, but not the one referred to" : "CRC does not match its bytes");
  }
  TRY(check_ranges(h));
  if (h.identity != expected.identity)
    return corrupt("{} node at block {}: belongs to another filesystem", tree, expected.address);
  if (h.address != expected.address)
    return corrupt("{} node at block {}: says it stands at block {}", tree, expected.address, h.address);
  if (h.tree != expected.tree)
    return corrupt("{} node at block {}: belongs to {}", tree, expected.address, name_of(h.tree));
  if (expected.level >= 0 && h.level != expected.level)
    return corrupt("{} node at block {}: level {} instead of {}", tree, expected.address, h.level, expected.level);
  return h;
}

}  // namespace varve::format
