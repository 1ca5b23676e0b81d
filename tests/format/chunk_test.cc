#include "format/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "samples.h"

namespace varve::format {
namespace {

ChunkHeader sample(std::size_t record_bytes) {
  ChunkHeader h;
  h.identity = test::kIdentity;
  h.epoch = 0xFEEDFACE;
  h.lsn = Lsn{12};
  h.previous_crc = 0x01020304;
  h.header_blocks = chunk_header_blocks(record_bytes);
  h.payload_blocks = 5;
  h.record_bytes = static_cast<std::uint32_t>(record_bytes);
  h.address = BlockAddr{1030};
  h.run = {BlockAddr{1024}, record_bytes > kMaxChunkRecordBytes ? 512U : 64U};
  h.next_run = {BlockAddr{4096}, 17};
  h.durable = Lsn{10};
  h.settled = Serial{3};
  h.clock = 1234;
  h.next_ino = 99;
  h.payload_crc = 0xCAFE;
  h.elsewhere = {BlockAddr{1200}, 9};
  return h;
}

Bytes records_of(std::size_t size) {
  Bytes records(size);
  for (std::size_t i = 0; i < size; ++i) records[i] = static_cast<std::byte>(i * 7);
  return records;
}

Bytes encode(const ChunkHeader& header, std::span<const std::byte> records) {
  Bytes out(header.header_blocks * kBlockSize, std::byte{0xEE});
  encode_chunk(header, records, out);
  return out;
}

TEST(Chunk, ComesBackInEverySize) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kBlockSize - kChunkHeaderBytes,
                                 kBlockSize - kChunkHeaderBytes + 1, kMaxChunkRecordBytes, most_record_bytes(kMaxSegmentBlocks)}) {
    const Bytes records = records_of(size);
    const ChunkHeader header = sample(size);
    Bytes bytes(header.header_blocks * kBlockSize + 100);
    const std::uint32_t crc = encode_chunk(header, records, bytes);
    EXPECT_EQ(*peek_chunk(std::span(bytes).first(kBlockSize)), header);
    const auto chunk = decode_chunk(bytes);
    ASSERT_TRUE(chunk.ok()) << chunk.error().message();
    EXPECT_EQ(chunk->header, header);
    EXPECT_EQ(chunk->crc, crc);
    EXPECT_TRUE(std::ranges::equal(chunk->records, records));
  }
  EXPECT_EQ(chunk_header_blocks(kMaxChunkRecordBytes), kMaxChunkHeaderBlocks);
  EXPECT_EQ(chunk_header_blocks(most_record_bytes(kMaxSegmentBlocks)), kMaxLongHeaderBlocks);
}

TEST(Chunk, EveryFlippedByteIsNoticed) {
  const Bytes records = records_of(5000);
  Bytes bytes = encode(sample(5000), records);
  test::for_each_flip(bytes, [&](std::size_t at) { ASSERT_FALSE(decode_chunk(bytes).ok()) << "byte " << at; });
}

TEST(Chunk, TornBlocksAreNoticed) {
  const Bytes records = records_of(9000);
  const Bytes bytes = encode(sample(9000), records);
  for (std::size_t sector = 0; sector < bytes.size(); sector += 512) {
    Bytes torn = bytes;
    std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(sector), 512, std::byte{0xA5});
    EXPECT_FALSE(decode_chunk(torn).ok()) << "sector at " << sector;
  }
  EXPECT_FALSE(decode_chunk(std::span(bytes).first(2 * kBlockSize)).ok());
  EXPECT_FALSE(decode_chunk(std::span(bytes).first(100)).ok());
}

TEST(Chunk, ImpossibleHeadersAreRefusedBeforeTheCrcIsKnown) {
  auto refused = [](auto change) {
    ChunkHeader header = sample(100);
    change(header);
    Bytes out((header.header_blocks ? header.header_blocks : 1) * kBlockSize);
    Bytes records(header.record_bytes);
    if (header.header_blocks * kBlockSize < kChunkHeaderBytes + records.size()) return true;  // cannot be encoded
    encode_chunk(header, records, out);
    return peek_chunk(out).fails_with(Errc::corrupt) && decode_chunk(out).fails_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused([](ChunkHeader& h) {
    h.header_blocks = kMaxLongHeaderBlocks + 1;
    h.run.blocks = 512;
  }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.header_blocks = 60; })) << "the run ends before";
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.payload_blocks = 58; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.payload_blocks = 0xFFFFFFFF; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.address = BlockAddr{1023}; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.address = BlockAddr{0}; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.run.blocks = kMaxSegmentBlocks + 1; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.next_run = {BlockAddr{(1ULL << 48) - 1}, 64}; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.elsewhere = {BlockAddr{(1ULL << 48) - 1}, 64}; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.durable = h.lsn; }));
  EXPECT_TRUE(refused([](ChunkHeader& h) { h.lsn = Lsn{0}; }));
}

TEST(Chunk, LengthsAreBoundedWithoutTrustingThem) {
  Bytes bytes = encode(sample(100), records_of(100));
  for (const std::size_t field : {36U, 37U, 40U, 43U, 44U, 45U, 47U}) {  // header_blocks, payload_blocks, record_bytes
    Bytes bad = bytes;
    bad[field] = std::byte{0xFF};
    EXPECT_FALSE(decode_chunk(bad).ok());
  }
}

}  // namespace
}  // namespace varve::format
