// The target of whole images: metadata of a populated image is changed and every checksum made right again, up to the
// superblocks and along the chain; then it is checked, mounted, walked, changed and repaired.
#pragma once

#include "format/superblock.h"
#include "fuzz/decoders.h"
#include "io/mem_device.h"

namespace varve::fuzz {

void image(Input input);
Seeds image_seeds();
// The same, of nothing but the tables of snapshots.
void sfile(Input input);
Seeds sfile_seeds();

// Changes the metadata block `which` (an index into all there are, modulo) by `change`, and seals.
class Forger {
 public:
  explicit Forger(io::MemDevice& device);
  // At `offset`, modulo the block.
  void change(std::size_t which, std::size_t offset, Input bytes);
  // Only nodes of `.sfile` that are in use are changed from now on.
  void keep_to_tables();

 private:
  void seal_node(std::size_t index, std::span<std::byte> block);
  void seal_chunk(std::size_t index, std::span<std::byte> block);
  void tell_parents(BlockAddr address, std::uint32_t old_crc, std::uint32_t crc);
  void tell_next_chunk(std::uint64_t lsn, std::uint32_t crc);
  BlockAddr super_place(unsigned before) const;  // of the newest superblock, or so many before it
  void write_supers(std::span<std::byte> block);

  io::MemDevice& device_;
  std::vector<BlockAddr> blocks_;  // the newest superblock, nodes, heads of chunks
  std::vector<std::size_t> chosen_;  // of them, which may be changed; empty: all
  format::SuperblockArea area_;
  std::uint64_t newest_ = 0;       // sequence of the newest superblock, with an area
  unsigned depth_ = 0;             // of references told; references may form a circle by now
};

}  // namespace varve::fuzz
