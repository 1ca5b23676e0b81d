// A filesystem of which cleaning meets blocks that cannot be read, or are damaged.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "cleaner/file_layout.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "segments/segment_table.h"
#include "space/holes.h"
#include "store/store.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/listener.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::test {

inline constexpr std::uint64_t kDeviceBytes = 48u << 20;
inline constexpr std::uint32_t kSegmentBlocks = 64;
inline constexpr std::uint64_t kStretch = 60;   // blocks of the large file between two of those that stay
inline constexpr std::uint64_t kStretches = 80;
inline constexpr std::uint64_t kPieceBytes = 16 * kBlockSize;

// A file that is never written again has one block in each segment; all else is overwritten and so becomes garbage.
class BadBlocks : public ::testing::Test {
 protected:
  void SetUp() override { start("adaptive"); }
  void TearDown() override { fixture_.crash(); }

  void start(const std::string& strategy) {
    fixture_.crash();
    fixture_.options() = test_options(clock_, random_);
    fixture_.options().strategy = strategy;
    ASSERT_TRUE(make_image(memory_, {.segment_blocks = kSegmentBlocks}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
    auto cold = fixture_.make("/cold", 0100644), hot = fixture_.make("/hot", 0100644);
    ASSERT_TRUE(cold.ok() && hot.ok());
    cold_ = cold->ino;
    hot_ = hot->ino;
    for (std::uint64_t i = 0; i < kStretches; ++i) {
      ASSERT_TRUE(fixture_.write(cold_, i * kBlockSize, pattern_bytes(i + 1, 0, kBlockSize)).ok());
      for (std::uint64_t at = 0; at < kStretch * kBlockSize; at += 15 * kBlockSize)
        ASSERT_TRUE(write(i * kStretch * kBlockSize + at, 15 * kBlockSize));
      ASSERT_TRUE(fixture_.seal().ok());
    }
    ASSERT_TRUE(checkpoint());
  }
  fs::FilesystemStatus status() { return fixture_.fs().status(); }
  store::Store& store() { return fixture_.store(); }
  bool checkpoint() {
    return fixture_.checkpoint().ok();
  }

  // To the large file; what it says there is remembered by its number.
  bool write(std::uint64_t offset, std::uint64_t bytes) {
    const auto written = fixture_.write(hot_, offset, pattern_bytes(++writes_, 0, bytes));
    if (!written.ok()) failure_ = written.error().message();
    for (std::uint64_t at = 0; at < bytes; at += kBlockSize) content_[offset + at] = {writes_, at};
    return written.ok();
  }
  // Here and there, so many times the size of the device. Empty or the first error.
  std::string overwrite(unsigned times) { return overwrite_bytes(times * kDeviceBytes); }
  std::string overwrite_bytes(std::uint64_t bytes) {
    const std::uint64_t pieces = kStretches * kStretch * kBlockSize / kPieceBytes;
    for (std::uint64_t done = 0; done < bytes; done += kPieceBytes)
      if (!write(random_.next() % pieces * kPieceBytes, kPieceBytes)) return fmt::format("after {} bytes: {}", done, failure_);
    return "";
  }
  // One block of the file that stays out of each of so many segments.
  std::map<std::uint64_t, BlockAddr> choose(std::size_t count) {
    std::map<std::uint64_t, BlockAddr> chosen;
    std::set<SegmentId> segments;
    const auto part = cleaner::read_layout(store(), cold_, 0, kStretches);
    EXPECT_TRUE(part.ok());
    for (const cleaner::LiveBlock& block : part->blocks)
      if (chosen.size() < count && segments.insert(store().segments().geometry().segment_of(block.address)).second)
        chosen[block.block] = block.address;
    EXPECT_EQ(chosen.size(), count);
    return chosen;
  }
  void make_unreadable(BlockAddr address) {
    faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = address.v});
  }
  // A leaf of the reverse map all of whose segments hold blocks of the file that stays, so that none of them becomes clean.
  BlockAddr reverse_leaf_beside_cold_blocks() {
    tree::BlockingSource source = store().trees().source();
    const segments::SegmentGeometry& geometry = store().segments().geometry();
    const tree::MapRoot& map = store().trees().own_view().reverse_map;
    std::set<SegmentId> cold;
    const auto layout = cleaner::read_layout(store(), cold_, 0, kStretches);
    EXPECT_TRUE(layout.ok());
    for (const cleaner::LiveBlock& block : layout->blocks) cold.insert(geometry.segment_of(block.address));
    const std::uint64_t per_leaf = map.shape.per_leaf();
    for (std::uint64_t leaf = geometry.first.v / per_leaf + 1; geometry.contains(BlockAddr{(leaf + 1) * per_leaf}); ++leaf) {
      bool among_cold = true;
      for (std::uint64_t i = 0; i < per_leaf; ++i) among_cold &= cold.contains(geometry.segment_of(BlockAddr{leaf * per_leaf + i}));
      const auto ref = tree::find_map_node(source, map, leaf * per_leaf, 0);
      if (among_cold && ref.ok() && *ref) return ref->address;
    }
    ADD_FAILURE() << "there is none";
    return {};
  }
  // Leaves of the reverse map that tell of a clean segment and of blocks of the file that stays.
  std::vector<BlockAddr> reverse_leaves_of_clean_segments() {
    tree::BlockingSource source = store().trees().source();
    const segments::SegmentGeometry& geometry = store().segments().geometry();
    const tree::MapRoot& map = store().trees().own_view().reverse_map;
    const auto layout = cleaner::read_layout(store(), cold_, 0, kStretches);
    EXPECT_TRUE(layout.ok());
    std::set<BlockAddr> found;
    for (const cleaner::LiveBlock& block : layout->blocks) {
      const std::uint64_t leaf = block.address.v / map.shape.per_leaf();
      for (std::uint64_t at = leaf * map.shape.per_leaf(); at < (leaf + 1) * map.shape.per_leaf(); ++at) {
        if (!geometry.contains(BlockAddr{at})) continue;
        const auto ref = tree::find_map_node(source, map, at, 0);
        const bool is_clean = store().segments().info(geometry.segment_of(BlockAddr{at})).state == segments::SegmentState::clean;
        if (is_clean && ref.ok() && *ref) found.insert(ref->address);
      }
    }
    return {found.begin(), found.end()};
  }
  // Leaves of the inode file that nobody has changed for long: they stand in segments of nodes that are mostly dead.
  std::vector<BlockAddr> leaves_between(Ino first, Ino last) {
    std::vector<BlockAddr> found;
    tree::BlockingSource source = store().trees().source();
    const segments::SegmentGeometry& geometry = store().segments().geometry();
    for (std::uint64_t id = 0; id < geometry.count; ++id) {
      if (store().segments().info(SegmentId{id}).group != format::kGroupNodes) continue;
      const auto live = space::live_bits(source, store().trees().own_view(), geometry, SegmentId{id});
      for (std::uint32_t i = 0; i < geometry.blocks && live.ok(); ++i) {
        const BlockAddr address = geometry.start_of(SegmentId{id}) + i;
        AlignedBuffer block(kBlockSize);
        if (!(*live)[i] || !memory_.read(address.v << kBlockShift, block.span()).ok()) continue;
        const auto header = format::decode_node_header(block.span());
        if (header.ok() && header->tree == format::TreeId::inode_file && header->level == 0 && header->first.ino > first &&
            header->first.ino < last)
          found.push_back(address);
      }
    }
    return found;
  }
  // The first inode that the leaf tells of.
  Ino first_of(BlockAddr leaf) {
    AlignedBuffer block(kBlockSize);
    EXPECT_TRUE(memory_.read(leaf.v << kBlockShift, block.span()).ok());
    const auto header = format::decode_node_header(block.span());
    EXPECT_TRUE(header.ok());
    return header.ok() ? header->first.ino : Ino{};
  }
  void flip_a_bit(BlockAddr address) {
    AlignedBuffer block(kBlockSize);
    ASSERT_TRUE(memory_.read(address.v << kBlockShift, block.span()).ok());
    block.data()[100] ^= std::byte{4};
    ASSERT_TRUE(memory_.write(address.v << kBlockShift, block.span()).ok());
  }
  // Another version of the node, sound in itself: as if its latest write had been lost.
  void make_stale(BlockAddr address) {
    constexpr std::size_t kCrcAt = 4, kSerialAt = 16;
    AlignedBuffer block(kBlockSize);
    ASSERT_TRUE(memory_.read(address.v << kBlockShift, block.span()).ok());
    block.data()[kSerialAt] ^= std::byte{1};
    std::fill_n(block.data() + kCrcAt, 4, std::byte{});
    const std::uint32_t crc = crc32c(block.span());
    for (std::size_t i = 0; i < 4; ++i) block.data()[kCrcAt + i] = static_cast<std::byte>(crc >> (8 * i));
    ASSERT_TRUE(format::decode_node_header(block.span()).ok());
    ASSERT_TRUE(memory_.write(address.v << kBlockShift, block.span()).ok());
  }
  // In a directory of their own; their leaves end up in segments that are worth emptying.
  std::vector<Ino> make_files(int count) {
    fs::NewNode node;
    node.mode = 0040755;
    EXPECT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().make(op, kRootIno, "d", node); }).ok());
    std::vector<Ino> files;
    for (int i = 0; i < count; ++i) {
      const auto file = fixture_.make(fmt::format("/d/{}", i), 0100644);
      EXPECT_TRUE(file.ok());
      files.push_back(file->ino);
    }
    EXPECT_TRUE(checkpoint());
    return files;
  }
  // The bad ones give errors, all else is as it was written.
  void expect_content(const std::map<std::uint64_t, BlockAddr>& bad) {
    for (std::uint64_t i = 0; i < kStretches; ++i) {
      const auto read = fixture_.read(cold_, i * kBlockSize, kBlockSize);
      EXPECT_EQ(read.ok(), !bad.contains(i)) << "block " << i;
      EXPECT_TRUE(!read.ok() || *read == pattern_bytes(i + 1, 0, kBlockSize)) << "block " << i;
    }
    for (const auto& [offset, what] : content_) {
      const auto read = fixture_.read(hot_, offset, kBlockSize);
      ASSERT_TRUE(read.ok() && *read == pattern_bytes(what.first, what.second, kBlockSize)) << "offset " << offset;
    }
  }

  io::MemDevice memory_{kDeviceBytes};
  FaultDevice faulty_{memory_};
  ManualClock clock_;
  SeededRandom random_{1};
  FsFixture fixture_{faulty_, {}};
  Ino cold_, hot_;
  std::uint64_t writes_ = 0;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> content_;  // by offset: number of the write, place in it
  std::string failure_;
};

}  // namespace varve::test
