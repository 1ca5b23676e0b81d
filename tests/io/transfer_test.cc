// The rules for results that are short, late or absent.
#include "io/transfer.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/buffer.h"

namespace varve::io::test {
namespace {

class Transfers : public testing::Test {
 protected:
  Transfers() {
    for (std::size_t i = 0; i < 3; ++i) request_.add(memory_.data() + 2 * i * kBlockSize, 2 * kBlockSize);
    request_.offset = 10 * kBlockSize;
    transfer_.start();
  }
  const std::byte* next_byte() const { return static_cast<const std::byte*>(transfer_.iov()->iov_base); }

  AlignedBuffer memory_{6 * kBlockSize};
  IoRequest request_;
  Transfer transfer_{request_};
};

TEST_F(Transfers, Whole) {
  EXPECT_EQ(transfer_.iov_count(), 3U);
  EXPECT_EQ(transfer_.advance(6 * kBlockSize), Transfer::Next::finished);
}

TEST_F(Transfers, ContinuesInsideAPiece) {
  ASSERT_EQ(transfer_.advance(3 * kBlockSize), Transfer::Next::again);
  EXPECT_EQ(transfer_.offset(), 13 * kBlockSize);
  EXPECT_EQ(transfer_.iov_count(), 2U);
  EXPECT_EQ(next_byte(), memory_.data() + 3 * kBlockSize);
  EXPECT_EQ(transfer_.iov()->iov_len, kBlockSize);
  EXPECT_EQ(transfer_.iov()[1].iov_len, 2 * kBlockSize);
  ASSERT_EQ(transfer_.advance(kBlockSize), Transfer::Next::again);
  EXPECT_EQ(transfer_.iov_count(), 1U);
  EXPECT_EQ(transfer_.advance(2 * kBlockSize), Transfer::Next::finished);
  EXPECT_EQ(request_.iov.size(), 3U) << "the request itself stays as it was";
}

TEST_F(Transfers, RepeatsAPartOfABlock) {
  ASSERT_EQ(transfer_.advance(kBlockSize + 512), Transfer::Next::again);
  EXPECT_EQ(transfer_.offset(), 11 * kBlockSize);
  ASSERT_EQ(transfer_.advance(512), Transfer::Next::again);
  EXPECT_EQ(transfer_.offset(), 11 * kBlockSize);
  EXPECT_EQ(transfer_.advance(5 * kBlockSize), Transfer::Next::finished);
}

TEST_F(Transfers, NothingMeansTheEnd) {
  EXPECT_EQ(transfer_.advance(0), Transfer::Next::failed);
  EXPECT_EQ(transfer_.error(), EIO);
}

TEST_F(Transfers, RetriesAreBounded) {
  for (const int error : {EAGAIN, EINTR}) {
    transfer_.start();
    unsigned tries = 0;
    while (transfer_.advance(-error) == Transfer::Next::again) ASSERT_LT(++tries, 10'000U);
    EXPECT_GT(tries, 0U);
    EXPECT_EQ(transfer_.error(), error);
  }
}

TEST_F(Transfers, ErrorsEndIt) {
  EXPECT_EQ(transfer_.advance(-ENOSPC), Transfer::Next::failed);
  EXPECT_EQ(transfer_.error(), ENOSPC);
}

TEST_F(Transfers, AFlushMovesNothing) {
  IoRequest flush;
  flush.kind = IoKind::flush;
  EXPECT_EQ(Transfer(flush).advance(0), Transfer::Next::finished);
}

}  // namespace
}  // namespace varve::io::test
