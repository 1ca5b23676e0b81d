#include "image_tools.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

namespace varve::test {

std::vector<std::byte> block_at(const io::MemDevice& image, BlockAddr address) {
  std::vector<std::byte> bytes(kBlockSize);
  image.peek(address.v * kBlockSize, bytes);
  return bytes;
}

void flip_bit(io::MemDevice& image, BlockAddr address, std::size_t bit) {
  auto bytes = block_at(image, address);
  bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  image.poke(address.v * kBlockSize, bytes);
}

void wipe(io::MemDevice& image, BlockAddr address) {
  image.poke(address.v * kBlockSize, std::vector<std::byte>(kBlockSize));
}

std::vector<BlockAddr> find_block(const io::MemDevice& image, std::span<const std::byte> bytes) {
  std::vector<BlockAddr> found;
  for (std::uint64_t block = 0; block < image.geometry().blocks(); ++block) {
    const auto candidate = block_at(image, BlockAddr{block});
    if (std::equal(candidate.begin(), candidate.end(), bytes.begin(), bytes.end())) found.push_back(BlockAddr{block});
  }
  return found;
}

format::Superblock superblock_of(const io::MemDevice& image) {
  auto anchor = format::decode_superblock(block_at(image, BlockAddr{0}));
  if (!anchor.ok()) anchor = format::decode_superblock(block_at(image, BlockAddr{image.geometry().blocks() - 1}));
  if (!anchor.ok()) throw std::runtime_error(anchor.error().message());
  const format::SuperblockArea& area = anchor->area;
  std::optional<format::Superblock> newest;
  for (std::uint64_t i = 0; i < area.slots; ++i) {
    auto slot = format::decode_slot(*anchor, i, block_at(image, area.start + i * area.slot_blocks));
    if (slot.ok() && (!newest || slot->sequence > newest->sequence)) newest = *slot;
  }
  return newest ? *newest : *anchor;
}

std::vector<BlockAddr> superblock_places(const io::MemDevice& image) {
  const format::Superblock super = superblock_of(image);
  if (!super.area) return {BlockAddr{0}, BlockAddr{super.device_blocks - 1}};
  return {super.area.place_of(super.sequence - 1), super.area.place_of(super.sequence)};
}

std::vector<FoundChunk> chain_of(const io::MemDevice& image) {
  const format::Superblock super = superblock_of(image);
  std::map<Lsn, FoundChunk> all;
  for (std::uint64_t block = 1; block + format::kMaxChunkHeaderBlocks < image.geometry().blocks(); ++block) {
    auto peeked = format::peek_chunk(block_at(image, BlockAddr{block}));
    if (!peeked.ok() || peeked->identity != super.identity || peeked->epoch != super.epoch) continue;
    std::vector<std::byte> bytes(peeked->header_blocks * kBlockSize);
    image.peek(block * kBlockSize, bytes);
    auto chunk = format::decode_chunk(bytes);
    if (chunk.ok() && chunk->header.address == BlockAddr{block}) {
      all[chunk->header.lsn] = {chunk->header, chunk->crc};
    }
  }
  std::vector<FoundChunk> chain;
  for (Lsn lsn = super.lsn + 1; all.contains(lsn); ++lsn) chain.push_back(all[lsn]);
  return chain;
}

}  // namespace varve::test
