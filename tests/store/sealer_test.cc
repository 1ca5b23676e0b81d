// What one seal puts into the chain and where its payload goes: Sealer over parts on a device in memory, and read back as a mount does it.
#include "checkpoint/sealer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "format/record.h"
#include "io/mem_device.h"
#include "log/recovery.h"
#include "space/hole_feeder.h"
#include "store/store_parts.h"

namespace varve::checkpoint {
namespace {

constexpr std::size_t kPromised = 16 << 10;  // bytes of records, more than any of these cases writes

struct Mapped {
  Ino ino;
  std::uint64_t first = 0;
  BlockAddr address;
  bool moved = false;
  std::vector<std::uint32_t> crcs;
};

// A chunk of the chain, as recovery hands it out.
struct Found {
  format::ChunkHeader header;
  std::vector<Mapped> maps;
  std::string order;  // a letter for each record
};

class SealerTest : public ::testing::Test {
 protected:
  explicit SealerTest(std::uint16_t streams = 0) {
    test::write_filesystem(device_, made_);
    format::Superblock super = made_.super;
    super.device.streams = streams;
    super.device.streams_source = format::Source::given;
    super.epoch = test::StoreParts::kEpoch;
    parts_.emplace(device_, super);
    parts_->start();
    feeder_.emplace(space::HoleFeeder::Parts{parts_->gate, parts_->segments, parts_->log, parts_->trees, parts_->charge, parts_->space,
                                             parts_->faults});
    sealer_.emplace(Sealer::Parts{parts_->segments, parts_->log, parts_->log_clock, parts_->staging, parts_->space, *feeder_,
                                  parts_->faults});
  }
  ~SealerTest() override { EXPECT_EQ(parts_->faults.read_only(), ends_read_only_) << parts_->faults.reason(); }

  void promise(std::size_t bytes = kPromised) {
    const Gate::Pass pass(parts_->gate);
    ASSERT_TRUE(parts_->staging.unsealed().reserve_records(bytes));
  }
  changes::InodePtr create() {
    const Gate::Pass pass(parts_->gate);
    changes::InodePtr inode = parts_->staging.create_inode();
    const WriteLock lock(inode->mutex);
    inode->attributes.mode = 0100644;
    inode->attributes.nlink = 1;
    parts_->staging.set_attributes(*inode);
    return inode;
  }
  // Each block holds its number and `salt`.
  void write(changes::Inode& inode, const std::vector<std::uint64_t>& blocks, std::uint8_t group = 0, std::uint64_t salt = 1) {
    const Gate::Pass pass(parts_->gate);
    std::vector<changes::StageBlock> staged;
    for (const std::uint64_t block : blocks) {
      boost::intrusive_ptr<log::OwnPayloadBuffer> buffer(new log::OwnPayloadBuffer(1));
      const std::vector<std::byte> bytes = bytes_of(block, salt);
      std::memcpy(buffer->block(0), bytes.data(), kBlockSize);
      changes::PendingPtr data(new changes::PendingBlock(buffer, buffer->block(0)));
      data->crc = crc32c(bytes);
      data->group = group;
      changes::StageBlock one;
      one.block = block;
      one.data = std::move(data);
      staged.push_back(std::move(one));
    }
    const WriteLock lock(inode.mutex);
    parts_->staging.put_blocks(inode, staged, 1);
  }
  void write_row(changes::Inode& inode, std::uint64_t first, std::uint64_t count, std::uint8_t group = 0) {
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t i = 0; i < count; ++i) blocks.push_back(first + i);
    write(inode, blocks, group);
  }
  void clear(changes::Inode& inode, std::uint64_t from, std::uint64_t to) {
    const Gate::Pass pass(parts_->gate);
    const WriteLock lock(inode.mutex);
    parts_->staging.clear(inode, from, to, tree::Cleared::hole, 0);
  }
  static std::vector<std::byte> bytes_of(std::uint64_t block, std::uint64_t salt) {
    std::vector<std::byte> bytes(kBlockSize);
    std::memcpy(bytes.data(), &block, sizeof block);
    std::memcpy(bytes.data() + sizeof block, &salt, sizeof salt);
    return bytes;
  }

  Result<Lsn> seal(bool commit = true) {
    const Gate::Closure closed(parts_->gate);
    return sealer_->run(commit, nullptr);
  }
  std::uint64_t sealed_lsn(bool commit = true) {
    const Result<Lsn> lsn = seal(commit);
    EXPECT_TRUE(lsn.ok());
    return lsn.ok() ? lsn->v : 0;
  }

  // Everything that was sealed, from the device.
  std::vector<Found> read_back() {
    EXPECT_TRUE(parts_->make_log_durable().ok());
    std::vector<Found> chunks;
    const auto visit = [&](const format::Chunk& chunk) -> Status {
      Found found{chunk.header, {}, {}};
      TRY(format::decode_records(chunk.records, [&](const format::Record& record) -> Status {
        found.order += "afoOdDxXsmc"[record.index()];
        if (const auto* map = std::get_if<format::MapBlocks>(&record))
          found.maps.push_back({map->ino, map->first, map->address, map->moved, map->crcs});
        return {};
      }));
      chunks.push_back(std::move(found));
      return {};
    };
    const auto recovered = log::recover_chain(device_, parts_->super, visit);
    EXPECT_TRUE(recovered.ok()) << (recovered.ok() ? "" : recovered.error().message());
    return chunks;
  }
  // The maps lead to what was written.
  void expect_bytes(const std::vector<Found>& chunks, std::uint64_t blocks, std::uint64_t salt = 1) {
    std::uint64_t seen = 0;
    for (const Found& chunk : chunks)
      for (const Mapped& map : chunk.maps)
        for (std::size_t i = 0; i < map.crcs.size(); ++i, ++seen) {
          std::vector<std::byte> bytes(kBlockSize);
          ASSERT_TRUE(device_.read((map.address + i).v << kBlockShift, bytes).ok());
          EXPECT_EQ(bytes, bytes_of(map.first + i, salt)) << "block " << map.first + i;
          EXPECT_EQ(crc32c(bytes), map.crcs[i]);
        }
    EXPECT_EQ(seen, blocks);
  }
  static bool stands_inside(const Found& chunk, const Mapped& map) {
    const BlockAddr begin = chunk.header.address + chunk.header.header_blocks;
    return map.address >= begin && map.address + map.crcs.size() <= begin + chunk.header.payload_blocks;
  }

  io::MemDevice device_{test::kPartDeviceBytes};
  const format::EmptyFilesystem made_ = test::made_filesystem();
  bool ends_read_only_ = false;
  std::optional<test::StoreParts> parts_;
  std::optional<space::HoleFeeder> feeder_;
  std::optional<Sealer> sealer_;
};

class OneStreamTest : public SealerTest {
 protected:
  OneStreamTest() : SealerTest(1) {}
};

// --- what is written ----------------------------------------------------------------------------------------------------

TEST_F(SealerTest, WhereNothingWaitsNothingIsWritten) {
  promise();  // by an operation that had to wait for something else then
  const std::uint64_t before = made_.super.lsn.v;
  EXPECT_EQ(sealed_lsn(), before);
  EXPECT_TRUE(read_back().empty());
  EXPECT_EQ(parts_->staging.unsealed().reserved_records(), 0U);
}

TEST_F(SealerTest, AFileAndItsBlockAreOneChunk) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {0});
  EXPECT_EQ(sealed_lsn(), made_.super.lsn.v + 1);
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].order, "am");
  EXPECT_EQ(chunks[0].header.header_blocks, 1);
  EXPECT_EQ(chunks[0].header.payload_blocks, 1U);
  EXPECT_EQ(chunks[0].header.next_ino, file->ino.v + 1);
  EXPECT_EQ(chunks[0].maps[0].ino, file->ino);
  EXPECT_TRUE(stands_inside(chunks[0], chunks[0].maps[0]));
  expect_bytes(chunks, 1);
}

TEST_F(SealerTest, WhatWasSealedIsNotSealedAgain) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {0, 1});
  const std::uint64_t first = sealed_lsn();
  EXPECT_EQ(sealed_lsn(), first);
  promise();
  write(*file, {1}, 0, 2);
  EXPECT_EQ(sealed_lsn(), first + 1);
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[1].order, "m");
  EXPECT_EQ(chunks[1].maps[0].first, 1U);
  expect_bytes({chunks[1]}, 1, 2);
}

TEST_F(SealerTest, OfABlockThatWasWrittenTwiceTheLastOneIsWritten) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {0}, 0, 1);
  write(*file, {0}, 0, 2);
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].header.payload_blocks, 1U);
  expect_bytes(chunks, 1, 2);
}

TEST_F(SealerTest, AFileThatCameAndWentLeavesNothing) {
  promise();
  const changes::InodePtr other = create(), file = create();
  write(*file, {0, 1, 2});
  {
    const Gate::Pass pass(parts_->gate);
    const WriteLock lock(file->mutex);
    file->attributes.nlink = 0;
    parts_->staging.free_inode(*file);
  }
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].order, "a");
  EXPECT_EQ(chunks[0].header.payload_blocks, 0U);
}

// Replay reads records in their order: the blocks that were written after it would be gone.
TEST_F(SealerTest, WhatIsClearedComesBeforeWhatIsMapped) {
  promise();
  const changes::InodePtr file = create();
  write_row(*file, 0, 4);
  clear(*file, 0, 100);
  write(*file, {2});
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].order, "acm");
  EXPECT_EQ(chunks[0].header.payload_blocks, 1U);
}

TEST_F(SealerTest, ABlockThatACleanerMovedIsNamedAsSuch) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {7});
  sealed_lsn();
  const BlockAddr from = read_back().at(0).maps.at(0).address;
  promise();
  BlockAddr to;
  {
    const Gate::Closure closed(parts_->gate);
    to = parts_->log.heads().allocate(0, 1).start;
  }
  const std::vector<std::byte> bytes = bytes_of(7, 1);
  device_.poke(to.v << kBlockShift, bytes);  // a cleaner writes before there are records
  {
    const Gate::Pass pass(parts_->gate);
    const WriteLock lock(file->mutex);
    parts_->staging.move(*file, 7, from, to, crc32c(bytes), 1, 0);
  }
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 2U);
  ASSERT_EQ(chunks[1].order, "m");
  EXPECT_TRUE(chunks[1].maps[0].moved);
  EXPECT_EQ(chunks[1].maps[0].address, to);
  EXPECT_EQ(chunks[1].header.payload_blocks, 0U);
}

// --- where it goes ------------------------------------------------------------------------------------------------------

TEST_F(SealerTest, MuchGoesToAHeadAndLittleRidesInTheChunk) {
  promise();
  const changes::InodePtr file = create();
  write_row(*file, 0, 15);
  sealed_lsn();
  promise();
  write_row(*file, 100, 16);
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].header.payload_blocks, 15U);
  EXPECT_EQ(chunks[1].header.payload_blocks, 0U);
  EXPECT_FALSE(stands_inside(chunks[1], chunks[1].maps.at(0)));
  expect_bytes(chunks, 31);
}

TEST_F(SealerTest, WhereNobodyWaitsASingleBlockGoesToItsHead) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {0});
  sealed_lsn(false);
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].header.payload_blocks, 0U);
  expect_bytes(chunks, 1);
}

TEST_F(SealerTest, GroupsHaveHeadsOfTheirOwn) {
  promise();
  const changes::InodePtr file = create();
  write_row(*file, 0, 20, 0);
  write_row(*file, 20, 20, 1);
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].maps.size(), 2U);
  const auto& geometry = parts_->segments.geometry();
  EXPECT_NE(geometry.segment_of(chunks[0].maps[0].address), geometry.segment_of(chunks[0].maps[1].address));
  expect_bytes(chunks, 40);
}

TEST_F(SealerTest, BlocksStandInTheOrderOfTheirFile) {
  promise();
  const changes::InodePtr file = create();
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t i = 0; i < 20; ++i) blocks.push_back((i * 7) % 20);
  write(*file, blocks);
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].maps.size(), 1U);  // one piece
  EXPECT_EQ(chunks[0].maps[0].crcs.size(), 20U);
  expect_bytes(chunks, 20);
}

// The device keeps one place cheap, so chunks without records carry what one chunk cannot.
TEST_F(OneStreamTest, AllStandsInTheChain) {
  promise();
  const changes::InodePtr file = create();
  const std::uint64_t blocks = 3 * test::kPartSegmentBlocks;
  write_row(*file, 0, blocks);
  sealed_lsn();
  const std::vector<Found> chunks = read_back();
  ASSERT_GE(chunks.size(), 3U);
  std::uint64_t inside = 0;
  for (const Found& chunk : chunks) inside += chunk.header.payload_blocks;
  EXPECT_EQ(inside, blocks);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) EXPECT_TRUE(chunks[i].order.empty()) << "the seal counts as a whole or not at all";
  EXPECT_EQ(chunks.back().order.substr(0, 2), "am");
  expect_bytes(chunks, blocks);
}

// --- promises -----------------------------------------------------------------------------------------------------------

TEST_F(SealerTest, PromisesThatAreNotNeededAreTakenBack) {
  const std::size_t most = parts_->staging.unsealed().most_record_bytes();
  promise(most);
  const changes::InodePtr file = create();
  const Gate::Closure closed(parts_->gate);
  EXPECT_TRUE(sealer_->make_room_for_records());
  EXPECT_LT(parts_->staging.unsealed().reserved_records(), 200U);
  EXPECT_GT(parts_->staging.unsealed().reserved_records(), 0U);
  EXPECT_TRUE(sealer_->run(true, nullptr).ok());
}

TEST_F(SealerTest, AFullChunkStaysFull) {
  const std::size_t most = parts_->staging.unsealed().most_record_bytes();
  promise(most);
  const changes::InodePtr file = create();
  std::vector<std::uint64_t> scattered;
  for (std::uint64_t i = 0; i < most / 40; ++i) scattered.push_back(2 * i);
  write(*file, scattered);
  const Gate::Closure closed(parts_->gate);
  EXPECT_FALSE(sealer_->make_room_for_records());
  EXPECT_EQ(parts_->staging.unsealed().reserved_records(), most);
}

// --- faults -------------------------------------------------------------------------------------------------------------

TEST_F(SealerTest, WhatCouldNotBeSealedCanStillBeRead) {
  promise();
  const changes::InodePtr file = create();
  write(*file, {0});
  parts_->faults.go_read_only(Error(Errc::io, "as if the device had failed"));
  ends_read_only_ = true;
  const Result<Lsn> lsn = seal();
  ASSERT_FALSE(lsn.ok());
  EXPECT_TRUE(lsn.error().message().find("as if the device had failed") != std::string::npos);
  EXPECT_EQ(parts_->log.position().lsn, made_.super.lsn);
  const WriteLock lock(file->mutex);
  const tree::BlockEntry* entry = file->active->file->blocks.find(0);
  ASSERT_NE(entry, nullptr);
  ASSERT_TRUE(entry->place.is_pending());
  const std::vector<std::byte> bytes = bytes_of(0, 1);
  EXPECT_EQ(std::memcmp(entry->place.pending_block()->data, bytes.data(), kBlockSize), 0);
}

}  // namespace
}  // namespace varve::checkpoint
