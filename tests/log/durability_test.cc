// When a chunk is durable: the orders of completion that a mount with many threads meets, one by one. The queue of the
// device in memory holds what is submitted until it is polled.
#include "log/durability.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>

#include "io/mem_device.h"

namespace varve::log {
namespace {

class DurabilityTest : public ::testing::Test {
 protected:
  void SetUp() override { durability_.start(Lsn{10}); }

  // What the waiter for the chunk has been told: 1 durable, -1 an error, 0 nothing yet.
  void wait_for(std::uint64_t lsn) {
    durability_.when_durable(Lsn{lsn}, [this, lsn](const Status& status) { told_[lsn] = status.ok() ? 1 : -1; });
  }
  int told(std::uint64_t lsn) { return told_[lsn]; }
  void chunk(std::uint64_t lsn) { EXPECT_FALSE(durability_.chunk_started(Lsn{lsn}, false, lsn)); }  // as of the lsn-th ns
  void done(std::uint64_t lsn, int error = 0) { durability_.chunk_done(Lsn{lsn}, error); }
  std::uint64_t flushes() const { return io_.counts().flushes(); }
  void complete_flush() { ASSERT_EQ(io_.pump(), 1U); }

  io::MemDevice device_{1u << 20};
  device::IoContext io_{device_, false};
  Durability durability_{io_};
  std::map<std::uint64_t, int> told_;
};

TEST_F(DurabilityTest, H6_AFlushCoversWhatWasCompleteWhenItWasIssued) {
  chunk(11);
  done(11);
  wait_for(11);
  ASSERT_EQ(flushes(), 1U);
  chunk(12);  // its write may reach the device after the flush did
  done(12);
  wait_for(12);
  complete_flush();
  EXPECT_EQ(told(11), 1);
  EXPECT_EQ(told(12), 0);
  EXPECT_EQ(durability_.durable(), Lsn{11});
  ASSERT_EQ(flushes(), 2U) << "one of its own";
  complete_flush();
  EXPECT_EQ(told(12), 1);
}

TEST_F(DurabilityTest, H6_AChunkWaitsForThePayloadBeforeIt) {
  const auto first = durability_.payload_started();
  chunk(11);
  const auto second = durability_.payload_started();
  wait_for(11);
  done(11);
  EXPECT_EQ(flushes(), 0U) << "what it names is on its way";
  durability_.payload_done(first, 0);
  EXPECT_EQ(flushes(), 1U) << "what came later is not waited for";
  complete_flush();
  EXPECT_EQ(told(11), 1);
  durability_.payload_done(second, 0);
}

TEST_F(DurabilityTest, H6_AChunkWaitsForTheChunksBeforeIt) {
  chunk(11);
  chunk(12);
  wait_for(12);
  done(12);
  EXPECT_EQ(flushes(), 0U);
  done(11);
  EXPECT_EQ(flushes(), 1U);
  complete_flush();
  EXPECT_EQ(told(12), 1);
  EXPECT_EQ(durability_.durable(), Lsn{12});
}

TEST_F(DurabilityTest, H6_ADurableChunkSaysNothingOfWhatOthersHaveWritten) {
  ASSERT_TRUE(durability_.chunk_started(Lsn{11}, true, 11)) << "alone: one request instead of two";
  done(11);
  ASSERT_EQ(durability_.durable(), Lsn{11});
  durability_.note_write();
  EXPECT_FALSE(durability_.chunk_started(Lsn{12}, true, 12)) << "it may name what has been written aside";
  done(12);
  wait_for(12);
  durability_.note_write();  // while the flush is under way
  ASSERT_EQ(flushes(), 1U);
  complete_flush();
  EXPECT_EQ(told(12), 1);
  EXPECT_FALSE(durability_.chunk_started(Lsn{13}, true, 13));
  done(13);
  wait_for(13);
  complete_flush();
  EXPECT_TRUE(durability_.chunk_started(Lsn{14}, true, 14)) << "all of it has been flushed";
}

TEST_F(DurabilityTest, H48_TheOldestChunkForWhichNoFlushWillComeIsKnown) {
  EXPECT_EQ(durability_.unawaited_since_ns(), 0U);
  for (const std::uint64_t lsn : {11, 12, 13}) {
    chunk(lsn);
    done(lsn);
    EXPECT_EQ(durability_.unawaited_since_ns(), 11U);
  }
  wait_for(12);
  EXPECT_EQ(durability_.unawaited_since_ns(), 13U) << "the others will be flushed";
  chunk(14);
  complete_flush();
  EXPECT_EQ(durability_.unawaited_since_ns(), 14U) << "chunk 13 has been flushed with them";
  done(14);
  ASSERT_TRUE(durability_.flush_now().ok());
  EXPECT_EQ(durability_.unawaited_since_ns(), 0U);
  ASSERT_TRUE(durability_.chunk_started(Lsn{15}, true, 15));
  EXPECT_EQ(durability_.unawaited_since_ns(), 15U);
  done(15);
  EXPECT_EQ(durability_.unawaited_since_ns(), 0U) << "durable by itself";
}

// One fsync after the other would keep a checkpoint waiting for as long as they come.
TEST_F(DurabilityTest, FlushesOfOthersDoNotOvertakeOneThatWaitsForItsTurn) {
  chunk(11);
  done(11);
  wait_for(11);
  chunk(12);
  done(12);
  wait_for(12);
  ASSERT_EQ(flushes(), 1U);
  ASSERT_TRUE(durability_.flush_now().ok());
  EXPECT_EQ(flushes(), 2U) << "chunk 12 has had one of its own before";
  EXPECT_EQ(told(12), 1);
}

TEST_F(DurabilityTest, H14_AfterAFailedWriteNothingIsDurable) {
  for (const bool payload : {false, true}) {
    Durability durability(io_);
    durability.start(Lsn{10});
    const auto ticket = durability.payload_started();
    durability.chunk_started(Lsn{11}, false, 11);
    int told = 0;
    durability.when_durable(Lsn{11}, [&](const Status& status) { told = status.ok() ? 1 : -1; });
    durability.payload_done(ticket, payload ? EIO : 0);
    durability.chunk_done(Lsn{11}, payload ? 0 : EIO);
    EXPECT_EQ(told, -1);
    EXPECT_TRUE(durability.failure());
    EXPECT_EQ(durability.durable(), Lsn{10});
    durability.chunk_started(Lsn{12}, false, 12);
    durability.chunk_done(Lsn{12}, 0);
    durability.when_durable(Lsn{12}, [&](const Status& status) { told = status.ok() ? 2 : -2; });
    EXPECT_EQ(told, -2);
  }
  EXPECT_EQ(flushes(), 0U);
}

}  // namespace
}  // namespace varve::log
