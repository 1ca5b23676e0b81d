// Content becomes stored blocks and content again; bytes that are no unit are an error.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <optional>

#include "blocks/content.h"
#include "blocks/unit_decoder.h"
#include "blocks/unit_encoder.h"
#include "format/codec.h"

namespace varve::blocks {
namespace {

using test::Content;

const Compression kCompressions[] = {
    {format::Coding::zstd, 1}, {format::Coding::zstd, 3}, {format::Coding::zstd, 15}, {format::Coding::lz4, 1}};

// The stored blocks, or nothing.
Content encoded(const Content& content, const Compression& how) {
  UnitEncoder encoder;
  Content stored(content.size(), std::byte{0xEE});
  stored.resize(encoder.encode(content, how, stored) * kBlockSize);
  return stored;
}

std::optional<Content> decoded(const Content& stored) {
  UnitDecoder decoder;
  const auto content = decoder.decode(stored);
  if (!content.ok()) {
    EXPECT_TRUE(content.fails_with(Errc::corrupt));
    return std::nullopt;
  }
  return Content(content.value().span().begin(), content.value().span().end());
}

// A unit with these coded bytes, whose header and padding are as they should be.
Content with_coded(const format::UnitHeader& header, const Content& coded) {
  Content stored(header.stored_blocks() * kBlockSize);
  std::copy_n(coded.begin(), std::min<std::size_t>(coded.size(), header.coded_bytes), stored.begin() + format::kUnitHeaderBytes);
  format::encode_unit_header(header, stored);
  return stored;
}

TEST(UnitCodec, ContentComesBack) {
  for (const Compression& how : kCompressions) {
    for (const std::uint32_t blocks : {2U, 3U, 8U, 31U, 32U}) {
      const Content content = test::text(blocks, blocks);
      const Content stored = encoded(content, how);
      ASSERT_FALSE(stored.empty()) << text_of(how) << " " << blocks;
      EXPECT_LE(stored.size() / kBlockSize, format::most_stored_blocks(blocks));
      EXPECT_EQ(decoded(stored), content);
    }
  }
}

TEST(UnitCodec, ContentOfZerosTakesOneBlock) {
  for (const Compression& how : kCompressions) EXPECT_EQ(encoded(Content(32 * kBlockSize), how).size(), kBlockSize);
}

TEST(UnitCodec, WhatDoesNotSaveABlockInEightIsNotKept) {
  for (const Compression& how : kCompressions) {
    EXPECT_TRUE(encoded(test::noise(32), how).empty());
    EXPECT_TRUE(encoded(test::text(1), how).empty());
    EXPECT_TRUE(encoded({}, how).empty());
    // 27 blocks of noise and some bytes fit in 28, what stands for 28 does not.
    Content mixed = test::noise(32);
    std::fill(mixed.begin() + 27 * kBlockSize, mixed.end(), std::byte{0});
    EXPECT_EQ(encoded(mixed, how).size(), 28 * kBlockSize);
    std::ranges::copy(test::noise(1, 2), mixed.begin() + 27 * kBlockSize);
    EXPECT_TRUE(encoded(mixed, how).empty());
  }
}

TEST(UnitCodec, OneEncoderAndOneDecoderServeUnitsOfAllKinds) {
  UnitEncoder encoder;
  UnitDecoder decoder;
  SeededRandom random(5);
  for (unsigned i = 0; i < 200; ++i) {
    const auto blocks = static_cast<std::uint32_t>(2 + random.next() % 31);
    const Content content = random.next() % 4 ? test::text(blocks, i) : test::noise(blocks, i);
    Content stored(content.size());
    const std::uint32_t taken = encoder.encode(content, kCompressions[random.next() % std::size(kCompressions)], stored);
    if (taken == 0) continue;
    const auto back = decoder.decode(std::span(stored).first(taken * kBlockSize));
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(std::ranges::equal(back.value().span(), content));
  }
}

// Of lz4 a changed distance may lead to the same bytes. Other content never passes for that of the unit.
TEST(UnitCodec, AChangedByteIsAnErrorOrChangesNothing) {
  SeededRandom random(3);
  for (const Compression& how : kCompressions) {
    const Content content = test::text(32);
    const Content stored = encoded(content, how);
    for (unsigned i = 0; i < 300; ++i) {
      Content changed = stored;
      std::size_t at = random.next() % (i < 100 ? format::kUnitHeaderBytes : changed.size());
      if (at == 6 || at == 7) at = 8;  // two reserved bytes mean nothing
      changed[at] ^= static_cast<std::byte>(1 + random.next() % 255);
      const auto back = decoded(changed);
      const bool is_right = back ? how.coding == format::Coding::lz4 && at >= format::kUnitHeaderBytes && *back == content : true;
      EXPECT_TRUE(is_right) << text_of(how) << " byte " << at;
    }
  }
}

TEST(UnitCodec, AnotherNumberOfBlocksIsAnError) {
  const Content stored = encoded(test::text(32), {});
  ASSERT_GT(stored.size(), kBlockSize);
  EXPECT_EQ(decoded({}), std::nullopt);
  EXPECT_EQ(decoded(Content(stored.begin(), stored.begin() + 7)), std::nullopt);
  EXPECT_EQ(decoded(Content(stored.begin(), stored.end() - kBlockSize)), std::nullopt);
  Content longer = stored;
  longer.resize(stored.size() + kBlockSize);
  EXPECT_EQ(decoded(longer), std::nullopt);
}

// It would decode to 1 GiB of zeros. No more than the unit's 128 KiB are ever written.
TEST(UnitCodec, ABombIsAnError) {
  const Content zeros(1 << 30);
  Content coded(ZSTD_compressBound(zeros.size()));
  coded.resize(ZSTD_compress(coded.data(), coded.size(), zeros.data(), zeros.size(), 1));
  ASSERT_LT(coded.size(), 28 * kBlockSize);
  EXPECT_EQ(decoded(with_coded({format::Coding::zstd, 32, static_cast<std::uint32_t>(coded.size()), 0}, coded)), std::nullopt);
}

TEST(UnitCodec, OneCodingIsNotTheOther) {
  for (const Compression& how : kCompressions) {
    Content stored = encoded(test::text(32), how);
    format::UnitHeader header = format::decode_unit_header(stored).value();
    header.coding = header.coding == format::Coding::zstd ? format::Coding::lz4 : format::Coding::zstd;
    format::encode_unit_header(header, stored);
    EXPECT_EQ(decoded(stored), std::nullopt);
  }
}

TEST(UnitCodec, ALengthThatTheContentHasNotIsAnError) {
  for (const Compression& how : kCompressions) {
    for (const std::uint32_t blocks : {15U, 17U}) {
      Content stored = encoded(test::text(16), how);
      format::UnitHeader header = format::decode_unit_header(stored).value();
      header.blocks = blocks;
      format::encode_unit_header(header, stored);
      EXPECT_EQ(decoded(stored), std::nullopt);
    }
  }
}

// The library would read over a second frame, and over one that may be skipped.
TEST(UnitCodec, BytesBehindTheFrameAreAnError) {
  const Content stored = encoded(test::text(16), {});
  format::UnitHeader header = format::decode_unit_header(stored).value();
  const auto coded = format::coded_bytes_of(header, stored);
  Content skippable(coded.begin(), coded.end());
  for (const unsigned byte : {0x50U, 0x2AU, 0x4DU, 0x18U, 0U, 0U, 0U, 0U}) skippable.push_back(static_cast<std::byte>(byte));
  header.coded_bytes = static_cast<std::uint32_t>(skippable.size());
  EXPECT_EQ(decoded(with_coded(header, skippable)), std::nullopt);
}

}  // namespace
}  // namespace varve::blocks
