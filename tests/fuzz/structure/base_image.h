// The images that fuzzing of whole images begins with, and an index of their metadata. Each is made once in a process; it is as small as
// mkfs allows, and holds little, so that thousands can be mounted in a second.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "format/superblock.h"
#include "fuzz/structure/parts.h"
#include "io/mem_device.h"

namespace varve::fuzz {

// A block that the format gives a meaning; the header of a chunk may have more than one.
struct MetaBlock {
  BlockAddr address;
  Part part = Part::superblock;
  Bytes bytes;
  std::uint32_t crc = 0;           // as references hold it
  std::vector<unsigned> parents{};  // blocks with a reference to it
};

struct BaseImage {
  io::MemStore store{0};
  format::Superblock super;
  // The newest superblock, then all that it leads to, chunks of the log in their order, and then nodes of former checkpoints.
  std::vector<MetaBlock> blocks;
  std::size_t current = 0;  // so many of them belong to the newest state
  std::unordered_map<std::uint64_t, unsigned> by_address;
  std::vector<unsigned> chunks;     // of those to replay
  std::vector<unsigned> tables;     // nodes of `.sfile`
  std::vector<BlockAddr> data;      // blocks of files in the newest state
  std::vector<Ino> inodes;
};

inline constexpr unsigned kBaseImages = 8;
const char* name_of_base(unsigned kind);
const BaseImage& base_image(unsigned kind);  // modulo

}  // namespace varve::fuzz
