#include "repair/node_space.h"

#include <algorithm>
#include <cstring>

namespace varve::repair {

namespace {

constexpr std::size_t kPieceBlocks = 64;

// Clean segments that the engine needs to recover and to checkpoint.
std::uint64_t left_to_engine(std::uint64_t segments) { return segments / 64 + segments / 48 + 10; }

}  // namespace

NodeSpace::NodeSpace(io::BlockDevice& device, const format::Superblock& super)
    : device_(device), super_(super), taken_(super.device_blocks), filled_(super.segments),
      piece_(kPieceBlocks * kBlockSize) {}

bool NodeSpace::is_clean(std::uint64_t segment) const {
  for (std::uint32_t i = 0; i < super_.segment_blocks; ++i)
    if (taken_[(start_of(segment) + i).v]) return false;
  return true;
}

void NodeSpace::count_clean() {
  counted_ = true;
  clean_set_.resize(super_.segments);
  for (std::uint64_t s = super_.segments; s-- > 0;)
    if (is_clean(s)) {
      clean_.push_back(s);
      clean_set_[s] = true;
    }
}

Result<BlockAddr> NodeSpace::allocate() {
  if (!counted_) count_clean();
  if (next_ == end_ && clean_.size() > left_to_engine(super_.segments)) {
    next_ = start_of(clean_.back());
    end_ = next_ + super_.segment_blocks;
    filled_[clean_.back()] = true;
    clean_set_[clean_.back()] = false;
    clean_.pop_back();
  }
  if (next_ != end_) {
    const BlockAddr given = next_;
    ++next_;
    INVARIANT(!taken_[given.v]);  // none is handed out twice, nor one that is needed
    taken_[given.v] = true;
    return given;
  }
  // Holes in segments that are in use, then what was to be left clean.
  for (; holes_in_clean_ < 2; ++holes_in_clean_, hole_ = 0) {
    for (; hole_ < super_.segments * super_.segment_blocks; ++hole_) {
      const BlockAddr given = super_.first_segment + hole_;
      if (taken_[given.v] || (holes_in_clean_ == 0 && left_clean(hole_ / super_.segment_blocks))) continue;
      taken_[given.v] = true;
      return given;
    }
  }
  return Error(Errc::no_space, fmt::format("{}: every block is in use, and a repair needs some for the new metadata; nothing has been "
                                           "changed. Copy what can be read to another filesystem: varve salvage {} DIR",
                                           device_.name(), device_.name()));
}

Status NodeSpace::write(BlockAddr address, std::span<const std::byte> block, std::uint32_t, format::TreeId, std::uint8_t) {
  INVARIANT(block.size() == kBlockSize && address.v < taken_.size() && taken_[address.v]);  // allocate() has given it
  if (piece_blocks_ == kPieceBlocks || (piece_blocks_ > 0 && address != piece_start_ + piece_blocks_)) TRY(write_piece());
  if (piece_blocks_ == 0) piece_start_ = address;
  std::memcpy(piece_.data() + piece_blocks_ * kBlockSize, block.data(), kBlockSize);
  ++piece_blocks_;
  return {};
}

Status NodeSpace::write_piece() {
  if (piece_blocks_ == 0) return {};
  const std::size_t bytes = piece_blocks_ * kBlockSize;
  piece_blocks_ = 0;
  return device_.write(piece_start_.v * kBlockSize, piece_.span().first(bytes));
}

Status NodeSpace::finish() { return write_piece(); }

}  // namespace varve::repair
