// A log that is given up while chunks are still written: operations that wait for less in flight hear of it, but not from within
// write_chunk(), which is called with the engine's gate closed.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "base/gate.h"
#include "io/mem_device.h"
#include "log/log.h"

namespace varve::log {
namespace {

// Time is asked for between the moment at which a chunk counts as in flight and that at which it is submitted.
class InterruptedClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t monotonic_ns() override {
    if (auto call = std::exchange(interruption, nullptr)) call();
    return 1;
  }
  std::function<void()> interruption;
};

class GivingUp : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSegmentBlocks = 512, kPayload = 300;  // more than may be in flight

  void start(bool epoch_on_disk) {
    const Gate::Closure closed(gate_);
    segments_.finish_loading();
    const segments::SegmentGeometry& geometry = segments_.geometry();
    log_.start({{geometry.start_of(*segments_.take(format::kGroupChain)), kSegmentBlocks}, {}, Lsn{1}, 0}, 1, epoch_on_disk);
  }
  // Somebody begins to wait for room when it is in flight.
  void write_chunk() {
    const auto buffer = PayloadBufferPtr(new OwnPayloadBuffer(1));
    const PayloadPtr block(new PayloadBlock(buffer, static_cast<OwnPayloadBuffer&>(*buffer).block(0)));
    const Gate::Closure closed(gate_);
    const auto place = log_.place_chunk(1, kPayload, false);
    ASSERT_TRUE(place.ok());
    clock_.interruption = [this] { log_.flow().when_room([this] { on_room_(); }); };
    log_.write_chunk(*place, {}, std::vector<PayloadPtr>(kPayload, block), {}, {.commit = true});
  }
  std::uint64_t written() const { return io_.counts()[io::IoKind::write].requests; }

  io::MemDevice device_{16u << 20};
  device::IoContext io_{device_, false};
  segments::SegmentTable segments_{{BlockAddr{256}, kSegmentBlocks, 4}};
  InterruptedClock clock_;
  Gate gate_;
  Log log_{io_, segments_, 1, clock_, 0};
  int told_ = 0;
  std::function<void()> on_room_ = [this] { ++told_; };
};

TEST_F(GivingUp, NobodyIsToldWhileAChunkIsWritten) {
  start(true);
  log_.give_up();
  write_chunk();
  EXPECT_EQ(told_, 0);
  EXPECT_TRUE(log_.flow().is_full());
  log_.give_up();
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(log_.flow().bytes(), 0U);
  EXPECT_TRUE(log_.durability().failure());
  EXPECT_EQ(written(), 0U);
}

TEST_F(GivingUp, ChunksThatWaitForTheirEpochAreNotWrittenAnyMore) {
  start(false);
  write_chunk();
  log_.give_up();
  EXPECT_EQ(told_, 1);
  write_chunk();
  log_.epoch_written();  // by the thread that was writing it
  EXPECT_EQ(written(), 0U);
  EXPECT_EQ(told_, 1);
  log_.give_up();
  EXPECT_EQ(told_, 2);
}

}  // namespace
}  // namespace varve::log
