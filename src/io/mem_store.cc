#include "io/mem_store.h"

#include <algorithm>
#include <cstring>

#include "base/invariant.h"

namespace varve::io {

MemStore::MemStore(std::uint64_t blocks) : blocks_(blocks), chunks_((blocks + kChunkBlocks - 1) / kChunkBlocks) {}

void MemStore::resize(std::uint64_t blocks) {
  const std::uint64_t whole = (blocks + kChunkBlocks - 1) / kChunkBlocks;
  if (blocks < blocks_) clear(blocks, std::min(blocks_, whole * kChunkBlocks) - blocks);
  chunks_.resize(whole);
  blocks_ = blocks;
}

MemStore::BlockPtr MemStore::block(std::uint64_t index) const {
  MEMORY_INVARIANT(index < blocks_);
  const ChunkPtr& chunk = chunks_[index / kChunkBlocks];
  return chunk ? chunk->blocks[index % kChunkBlocks] : nullptr;
}

MemStore::BlockPtr& MemStore::own_slot(std::uint64_t index) {
  MEMORY_INVARIANT(index < blocks_);
  ChunkPtr& chunk = chunks_[index / kChunkBlocks];
  if (!chunk) chunk = new Chunk();
  if (!chunk->unique()) chunk = new Chunk(*chunk);
  return chunk->blocks[index % kChunkBlocks];
}

MemStore::Block& MemStore::own_block(std::uint64_t index, bool keep_contents) {
  BlockPtr& slot = own_slot(index);
  if (slot && slot->unique()) return *slot;
  const BlockPtr before = slot;
  slot = new Block();
  if (keep_contents && before) slot->bytes = before->bytes;
  if (keep_contents && !before) slot->bytes.fill(std::byte{0});
  return *slot;
}

void MemStore::set_block(std::uint64_t index, BlockPtr block) {
  if (!block && !this->block(index)) return;
  own_slot(index) = std::move(block);
}

void MemStore::clear(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t index = first; index < first + count;) {
    const std::uint64_t in_chunk = std::min<std::uint64_t>(kChunkBlocks - index % kChunkBlocks, first + count - index);
    if (in_chunk == kChunkBlocks) {
      chunks_[index / kChunkBlocks] = nullptr;
    } else {
      for (std::uint64_t i = 0; i < in_chunk; ++i) set_block(index + i, nullptr);
    }
    index += in_chunk;
  }
}

MemStore::BlockPtr MemStore::make_block(std::span<const std::byte, kBlockSize> data) {
  BlockPtr block = new Block();
  std::memcpy(block->bytes.data(), data.data(), kBlockSize);
  return block;
}

void MemStore::read(std::uint64_t offset, std::span<std::byte> out) const {
  MEMORY_INVARIANT(out.size() <= blocks_ * kBlockSize && offset <= blocks_ * kBlockSize - out.size());
  while (!out.empty()) {
    const std::size_t start = offset % kBlockSize;
    const std::size_t bytes = std::min(out.size(), kBlockSize - start);
    const ChunkPtr& chunk = chunks_[block_of(offset) / kChunkBlocks];
    const Block* const found = chunk ? chunk->blocks[block_of(offset) % kChunkBlocks].get() : nullptr;
    if (found) {
      std::memcpy(out.data(), found->bytes.data() + start, bytes);
    } else {
      std::memset(out.data(), 0, bytes);
    }
    offset += bytes;
    out = out.subspan(bytes);
  }
}

void MemStore::write(std::uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::size_t start = offset % kBlockSize;
    const std::size_t bytes = std::min(data.size(), kBlockSize - start);
    Block& target = own_block(block_of(offset), bytes < kBlockSize);
    std::memcpy(target.bytes.data() + start, data.data(), bytes);
    offset += bytes;
    data = data.subspan(bytes);
  }
}

}  // namespace varve::io
