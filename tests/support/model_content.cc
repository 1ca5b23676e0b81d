#include "support/model_content.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/types.h"
#include "support/pattern.h"

namespace varve::test {

namespace {

std::uint64_t block_up(std::uint64_t offset) { return round_up(offset, kBlockSize); }
std::uint64_t block_down(std::uint64_t offset) { return offset / kBlockSize * kBlockSize; }

}  // namespace

// Makes `offset` a border between pieces if it lies inside one.
void ModelContent::split(std::uint64_t offset) {
  auto after = pieces_.lower_bound(offset);
  if (after == pieces_.begin()) return;
  auto inside = std::prev(after);
  if (inside->second.end <= offset) return;
  Piece tail = inside->second;
  inside->second.end = offset;
  pieces_.emplace_hint(after, offset, tail);
}

void ModelContent::erase(std::uint64_t from, std::uint64_t end) {
  if (from >= end) return;
  split(from);
  split(end);
  pieces_.erase(pieces_.lower_bound(from), pieces_.lower_bound(end));
}

void ModelContent::blank(std::uint64_t from, std::uint64_t end) {
  if (from >= end) return;
  split(from);
  split(end);
  for (auto it = pieces_.lower_bound(from); it != pieces_.end() && it->first < end; ++it) {
    if (it->second.kind == Kind::pattern) it->second = Piece{it->second.end, 0, Kind::zero};
  }
}

void ModelContent::fill_gaps(std::uint64_t from, std::uint64_t end, Kind kind) {
  if (from >= end) return;
  split(from);
  split(end);
  std::uint64_t at = from;
  for (auto it = pieces_.lower_bound(from); at < end; ++it) {
    const std::uint64_t next = it == pieces_.end() ? end : std::min(end, it->first);
    if (next > at) it = pieces_.emplace_hint(it, at, Piece{next, 0, kind});
    at = it->second.end;
  }
}

void ModelContent::write(std::uint64_t offset, std::uint64_t length, std::uint64_t seed) {
  if (length == 0) return;
  erase(offset, offset + length);
  pieces_.emplace(offset, Piece{offset + length, seed, Kind::pattern});
}

void ModelContent::shrink(std::uint64_t size) {
  // The block that holds the new end keeps its space if it had any, so what is cut off it is "zero", not a hole.
  const std::uint64_t keep = block_up(size);
  blank(size, keep);
  erase(keep, ~0ULL);
}

void ModelContent::allocate(std::uint64_t offset, std::uint64_t length) {
  fill_gaps(offset, offset + length, Kind::unwritten);
}

void ModelContent::punch(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  blank(offset, end);
  erase(block_up(offset), block_down(end));
}

void ModelContent::zero(std::uint64_t offset, std::uint64_t length) {
  punch(offset, length);
  allocate(offset, length);
}

void ModelContent::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::ranges::fill(out, std::byte{0});
  const std::uint64_t end = offset + out.size();
  auto it = pieces_.upper_bound(offset);
  if (it != pieces_.begin()) --it;
  for (; it != pieces_.end() && it->first < end; ++it) {
    const std::uint64_t from = std::max(offset, it->first);
    const std::uint64_t to = std::min(end, it->second.end);
    if (from >= to || it->second.kind != Kind::pattern) continue;
    fill_pattern(it->second.seed, from, out.subspan(from - offset, to - from));
  }
}

ModelContent::BlockState ModelContent::block_state(std::uint64_t block) const {
  const std::uint64_t from = block * kBlockSize;
  auto it = pieces_.upper_bound(from);
  if (it != pieces_.begin()) --it;
  BlockState state = BlockState::hole;
  for (; it != pieces_.end() && it->first < from + kBlockSize; ++it) {
    if (it->second.end <= from) continue;
    if (it->second.kind == Kind::pattern) return BlockState::data;
    state = BlockState::either;
  }
  return state;
}

std::uint64_t ModelContent::hash(std::uint64_t size) const {
  std::uint64_t sum = 0;
  std::uint64_t next_block = 0;
  std::array<std::byte, kBlockSize> bytes;
  for (const auto& [start, piece] : pieces_) {
    if (piece.kind != Kind::pattern) continue;
    const std::uint64_t end = std::min(size, piece.end);
    for (std::uint64_t b = std::max(next_block, block_of(start)); b * kBlockSize < end; ++b) {
      const std::uint64_t length = std::min<std::uint64_t>(kBlockSize, size - b * kBlockSize);
      read(b * kBlockSize, std::span(bytes).first(length));
      sum += hash_of_block(b, std::span(bytes).first(length));
      next_block = b + 1;
    }
  }
  return sum;
}

std::uint64_t ModelContent::written_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [start, piece] : pieces_) {
    if (piece.kind == Kind::pattern) sum += piece.end - start;
  }
  return sum;
}

}  // namespace varve::test
