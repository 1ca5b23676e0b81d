// The content of one file of the model: which bytes were written with which pattern, and what a reader, SEEK_HOLE and
// SEEK_DATA may see. Costs a few dozen bytes for each range that was written, however big.
#pragma once

#include <cstdint>
#include <map>
#include <span>

namespace varve::test {

class ModelContent {
 public:
  enum class Kind : std::uint8_t {
    pattern,  // bytes of fill_pattern(seed, own offset)
    zero,     // zeros in a block that may own space: written once, then zeroed
    unwritten,  // zeros that fallocate promised space for
  };
  struct Piece {
    std::uint64_t end = 0;
    std::uint64_t seed = 0;
    Kind kind = Kind::pattern;
    bool operator==(const Piece&) const = default;
  };
  // What SEEK_DATA may say about a block: a hole is a hole only where nothing was written or promised since it was one.
  enum class BlockState : std::uint8_t { hole, data, either };

  void write(std::uint64_t offset, std::uint64_t length, std::uint64_t seed);
  void shrink(std::uint64_t size);                             // bytes from `size` on read as zeros from now on
  void allocate(std::uint64_t offset, std::uint64_t length);   // fallocate: promises space, changes no byte
  void punch(std::uint64_t offset, std::uint64_t length);      // whole blocks become holes, the rest zeros
  void zero(std::uint64_t offset, std::uint64_t length);       // as punch, but the space stays promised

  void read(std::uint64_t offset, std::span<std::byte> out) const;
  BlockState block_state(std::uint64_t block) const;
  std::uint64_t hash(std::uint64_t size) const;  // of the bytes before `size`, see hash_of_block
  std::uint64_t written_bytes() const;           // pattern bytes held: a lower bound of the space needed
  // Calls visit(first block, end block) for each maximal range of blocks with any piece, in order.
  template <class Visit>
  void each_touched_range(Visit&& visit) const;

  const std::map<std::uint64_t, Piece>& pieces() const { return pieces_; }
  bool operator==(const ModelContent&) const = default;

 private:
  void split(std::uint64_t offset);
  void erase(std::uint64_t from, std::uint64_t end);
  void blank(std::uint64_t from, std::uint64_t end);  // patterns become zeros, the rest stays
  void fill_gaps(std::uint64_t from, std::uint64_t end, Kind kind);

  std::map<std::uint64_t, Piece> pieces_;  // by first byte; disjoint
};

template <class Visit>
void ModelContent::each_touched_range(Visit&& visit) const {
  constexpr std::uint64_t kBlock = 4096;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  for (const auto& [start, piece] : pieces_) {
    const std::uint64_t from = start / kBlock;
    const std::uint64_t to = (piece.end + kBlock - 1) / kBlock;
    if (from > end || end == 0) {
      if (end > first) visit(first, end);
      first = from;
    }
    end = to > end ? to : end;
  }
  if (end > first) visit(first, end);
}

}  // namespace varve::test
