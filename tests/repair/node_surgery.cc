#include "repair/node_surgery.h"

#include <algorithm>
#include <stdexcept>

#include "base/crc32c.h"
#include "checkpoint/superblocks.h"

namespace varve::repair::test {

namespace {

using Block = std::array<std::byte, kBlockSize>;

Block block_at(const io::MemDevice& device, BlockAddr address) {
  Block block;
  device.peek(address.v * kBlockSize, block);
  return block;
}

void put32(std::span<std::byte> out, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

// As it stands in child references and slots: u48 address, u32 CRC.
std::array<std::byte, 10> reference(BlockAddr address, std::uint32_t crc) {
  std::array<std::byte, 10> bytes;
  for (unsigned i = 0; i < 6; ++i) bytes[i] = static_cast<std::byte>(address.v >> (8 * i));
  put32(std::span(bytes).subspan(6), crc);
  return bytes;
}

void tell_parents(io::MemDevice& device, const ImageBuilder& builder, BlockAddr address, std::uint32_t old_crc,
                  std::uint32_t crc) {
  const auto wanted = reference(address, old_crc);
  for (const auto& node : builder.nodes()) {
    if (node.address == address) continue;
    const Block block = block_at(device, node.address);
    const auto at = std::search(block.begin() + format::kNodeHeaderBytes, block.end(), wanted.begin(), wanted.end());
    if (at == block.end()) continue;
    const auto offset = static_cast<std::size_t>(at - block.begin()) + 6;
    change_node(device, builder, node.address, [&](std::span<std::byte> bytes) { put32(bytes.subspan(offset), crc); });
  }
  change_supers(device, [&](format::Superblock& super) {
    for (format::NodeRef* ref : {&super.inode_file, &super.reverse_map, &super.free_map})
      if (ref->address == address) ref->crc = crc;
  });
}

}  // namespace

BlockAddr node_of(const ImageBuilder& builder, format::TreeId tree, unsigned level, std::size_t which) {
  for (const auto& node : builder.nodes()) {
    const auto header = format::decode_node_header(node.bytes);
    if (header.ok() && header->tree == tree && header->level == level && which-- == 0) return node.address;
  }
  throw std::runtime_error("no such node");
}

void change_node(io::MemDevice& device, const ImageBuilder& builder, BlockAddr address,
                 const std::function<void(std::span<std::byte>)>& change) {
  Block block = block_at(device, address);
  const std::uint32_t old_crc = format::block_crc(block);
  change(block);
  put32(std::span(block).subspan(4), 0);
  put32(std::span(block).subspan(4), crc32c(block));
  device.poke(address.v * kBlockSize, block);
  tell_parents(device, builder, address, old_crc, format::block_crc(block));
}

void change_supers(io::MemDevice& device, const std::function<void(format::Superblock&)>& change) {
  auto found = checkpoint::read_superblocks(device);
  if (!found.ok()) throw std::runtime_error(found.error().message());
  format::Superblock& super = found->best;
  change(super);
  Block block;
  const auto put = [&](BlockAddr at) {
    format::encode_superblock(super, block);
    device.poke(at.v * kBlockSize, block);
  };
  if (super.area) {
    put(super.area.place_of(super.sequence));
    --super.sequence;
    put(super.area.place_of(super.sequence));
    super.sequence = 0;
  }
  put(BlockAddr{0});
  put(BlockAddr{super.device_blocks - 1});
}

void flip_bit(io::MemDevice& device, BlockAddr address, std::size_t bit) {
  Block block = block_at(device, address);
  block[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  device.poke(address.v * kBlockSize, block);
}

void wipe(io::MemDevice& device, BlockAddr address) { device.poke(address.v * kBlockSize, Block{}); }

}  // namespace varve::repair::test
