// The lease's records: what is encoded is decoded, in one sector; damage is no record; texts are cut and harmless.
#include "format/lease.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/buffer.h"

namespace varve::format {
namespace {

Process some_process() {
  Process process;
  process.boot.fill(7);
  process.pid = 1234;
  process.pid_namespace = 4026531836;
  process.started = 998877;
  process.host = "rose";
  process.program = "varve mount";
  process.place = "/mnt/data";
  return process;
}

Lease some_lease() { return {1, 10000, {1700000000, 5}, some_process(), {2049, 77}}; }
Challenge some_challenge() { return {9, {1700000001, 6}, true, some_process()}; }

AlignedBuffer block_of(const Lease& lease) {
  AlignedBuffer block(kBlockSize);
  encode_lease(lease, block.span());
  return block;
}

TEST(LeaseRecord, IsDecodedAsItWasEncoded) {
  AlignedBuffer block = block_of(some_lease());
  EXPECT_EQ(decode_lease(block.span()), some_lease());
  EXPECT_FALSE(decode_challenge(block.span()));
  encode_challenge(some_challenge(), block.span());
  EXPECT_EQ(decode_challenge(block.span()), some_challenge());
  EXPECT_FALSE(decode_lease(block.span()));
  encode_answer({9, 1}, block.span());
  EXPECT_EQ(decode_answer(block.span()), (Answer{9, 1}));
  EXPECT_FALSE(decode_challenge(block.span()));
}

TEST(LeaseRecord, StandsInOneSector) {
  const AlignedBuffer block = block_of(some_lease());
  const auto rest = block.span().subspan(512);
  EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(LeaseRecord, EveryChangedBitMakesItInvalid) {
  AlignedBuffer block = block_of(some_lease());
  for (std::size_t bit = 0; bit < 512 * 8; ++bit) {
    block.data()[bit / 8] ^= std::byte{static_cast<std::uint8_t>(1U << (bit % 8))};
    EXPECT_FALSE(decode_lease(block.span())) << bit;
    block.data()[bit / 8] ^= std::byte{static_cast<std::uint8_t>(1U << (bit % 8))};
  }
  EXPECT_TRUE(decode_lease(block.span()));
}

TEST(LeaseRecord, LongTextsAreCut) {
  Lease lease = some_lease();
  lease.process.host.assign(1000, 'h');
  lease.process.program.assign(1000, 'p');
  lease.process.place.assign(1000, 'x');
  const auto read = decode_lease(block_of(lease).span());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process.host, std::string(64, 'h'));
  EXPECT_EQ(read->process.program, std::string(32, 'p'));
  EXPECT_EQ(read->process.place, std::string(160, 'x'));
}

TEST(LeaseRecord, TextsCannotMoveACursor) {
  Lease lease = some_lease();
  lease.process.host = "a\x1b[2Jb";
  const auto read = decode_lease(block_of(lease).span());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process.host, "a?[2Jb");
}

TEST(LeaseRecord, NobodyIsNoHolder) {
  Lease lease = some_lease();
  lease.holder = 0;
  EXPECT_FALSE(decode_lease(block_of(lease).span()));
  EXPECT_FALSE(decode_lease(AlignedBuffer::zeroed(kBlockSize).span()));
}

}  // namespace
}  // namespace varve::format
