// Valid structures to encode, break and decode again.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/record.h"
#include "format/superblock.h"

namespace varve::format::test {

using Block = std::array<std::byte, kBlockSize>;

inline constexpr std::uint64_t kIdentity = 0x1122334455667788;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Extent sample_extent(Random& random, std::size_t blocks) {
  Extent extent;
  extent.address = BlockAddr{1 + random.next() % (1ULL << 40)};
  extent.length = blocks;
  extent.clock = static_cast<std::uint32_t>(random.next());
  extent.estimate = static_cast<std::uint8_t>(random.next());
  for (std::size_t i = 0; i < blocks; ++i) extent.crcs.push_back(static_cast<std::uint32_t>(random.next()));
  return extent;
}

inline Attributes sample_attributes() {
  Attributes a;
  a.mode = 0100644;
  a.uid = 1000;
  a.gid = 1000;
  a.nlink = 1;
  a.size = 4096;
  a.blocks = 1;
  a.generation = 0xDEADBEEF;
  a.atime = a.mtime = a.ctime = a.btime = {1'700'000'000, 123'456'789};
  return a;
}

inline Superblock sample_superblock() {
  Superblock s;
  s.uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  s.label = "sediment";
  s.identity = kIdentity;
  s.hash_key = {7, 8};
  s.made = {1'700'000'000, 5};
  s.device_blocks = 16384;
  s.segment_blocks = 64;
  s.segments = 250;
  s.first_segment = BlockAddr{256};
  s.serial = Serial{9};
  s.epoch = 0xABCDEF;
  s.lsn = Lsn{12};
  s.chain_crc = 0x12345678;
  s.chain = {BlockAddr{330}, 50};
  s.next_run = {BlockAddr{384}, 64};
  s.clock = 1000;
  s.next_ino = 5;
  s.inode_file = {BlockAddr{256}, 1, 40};
  s.inode_file_level = 2;
  s.reverse_map = {BlockAddr{257}, 2, 0};
  s.free_map = {BlockAddr{258}, 3, 0};
  s.image = {BlockAddr{259}, 4, 0};
  for (unsigned i = 0; i < kMaxGroups; ++i) s.group_centres[i] = i * 100;
  s.heads[3].rest = {BlockAddr{600}, 8};
  s.node_head.rest = {BlockAddr{260}, 60};
  s.live_blocks = 44;
  s.data_blocks = 40;
  s.reserved_blocks = 3;
  s.inodes = 4;
  s.clean = true;
  s.lifetime.user_blocks = 1;
  s.lifetime.errors = 10;
  s.first_error = {{1, 2}, 3, BlockAddr{4}, Ino{5}};
  s.last_error = {{6, 7}, 8, BlockAddr{9}, Ino{10}};
  return s;
}

// Calls check(i) with each bit of each byte of `bytes` flipped in turn, and restores it.
template <class Check>
void for_each_flip(std::span<std::byte> bytes, Check check) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::byte mask{static_cast<std::uint8_t>(1U << (i % 8))};
    bytes[i] ^= mask;
    check(i);
    bytes[i] ^= mask;
  }
}

}  // namespace varve::format::test
