#include "io/batch.h"

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "backends.h"
#include "io/mem_device.h"
#include "support/fault_device.h"
#include "support/interception.h"

namespace varve::io::test {
namespace {

// Tells how much was on its way at once.
class MeasuringDevice : public BlockDevice {
 public:
  explicit MeasuringDevice(BlockDevice& below, bool rotational = false) : below_(below), geometry_(below.geometry()) {
    geometry_.rotational = rotational;
  }
  const Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  void submit(Reactor& reactor, IoRequest& request) override {
    bytes_ += request.length;
    most_bytes = std::max(most_bytes, bytes_);
    most_requests = std::max(most_requests, reactor.in_flight() + 1);
    varve::test::after(request, [this](IoRequest& done) { bytes_ -= done.length; });
    below_.submit(reactor, request);
  }

  std::size_t most_requests = 0;
  std::uint64_t most_bytes = 0;

 private:
  std::uint64_t bytes_ = 0;
  BlockDevice& below_;
  Geometry geometry_;
};

class BatchTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 4096;

  // Writes of so many blocks each, a block in between.
  void add_writes(io::Batch& batch, std::size_t count, std::size_t blocks = 1) {
    for (std::size_t i = 0; i < count; ++i) {
      buffers_.emplace_back(blocks * kBlockSize);
      fill_pattern(buffers_.back().data(), place(i, blocks), 1, blocks);
      batch.add(IoKind::write, place(i, blocks) << kBlockShift).add(buffers_.back().data(), buffers_.back().size());
    }
  }
  bool is_written(std::size_t index, std::size_t blocks = 1) {
    AlignedBuffer found(blocks * kBlockSize);
    EXPECT_TRUE(device_.read(place(index, blocks) << kBlockShift, found.span()).ok());
    return has_pattern(found.data(), place(index, blocks), 1, blocks);
  }
  static std::uint64_t place(std::size_t index, std::size_t blocks) { return 1 + index * (blocks + 1); }

  std::deque<AlignedBuffer> buffers_;
  MemDevice device_{kBlocks << kBlockShift};
};

TEST_F(BatchTest, CarriesOutWhatWasAddedAndCanBeUsedAgain) {
  io::Batch batch(device_);
  EXPECT_TRUE(batch.run().ok());
  for (const std::size_t count : {std::size_t{1}, std::size_t{500}}) {
    add_writes(batch, count);
    EXPECT_EQ(batch.size(), count);
    EXPECT_TRUE(batch.run().ok());
    batch.clear();
  }
  for (std::size_t i = 0; i < 500; ++i) EXPECT_TRUE(is_written(i)) << i;
}

TEST_F(BatchTest, SmallRequestsGoTogetherLargeOnesDoNot) {
  MeasuringDevice small(device_), large(device_), rotational(device_, true);
  io::Batch a(small), b(large), c(rotational);
  add_writes(a, 200);
  add_writes(b, 10, 60);
  add_writes(c, 200);
  ASSERT_TRUE(a.run().ok() && b.run().ok() && c.run().ok());
  EXPECT_EQ(small.most_requests, io::BatchLimits{}.requests);
  EXPECT_EQ(large.most_requests, 1u);
  EXPECT_LE(large.most_bytes, io::BatchLimits{}.bytes);
  EXPECT_EQ(rotational.most_requests, io::BatchLimits{}.rotational);
}

TEST_F(BatchTest, ARequestAboveTheLimitGoesAlone) {
  MeasuringDevice measuring(device_);
  io::Batch batch(measuring);
  add_writes(batch, 3, 300);
  ASSERT_TRUE(batch.run().ok());
  EXPECT_EQ(measuring.most_requests, 1u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_written(i, 300));
}

TEST_F(BatchTest, StopsBetweenRequests) {
  io::Batch batch(device_);
  add_writes(batch, 100);
  unsigned asked = 0;
  EXPECT_FALSE(batch.run([&] { return ++asked > 40; }).ok());
  EXPECT_TRUE(batch.stopped());
  EXPECT_EQ(asked, 41u) << "not again when the answer is known";
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(batch.error_of(i), i < 40 ? 0 : ECANCELED) << i;
    EXPECT_EQ(is_written(i), i < 40) << i;
  }
  EXPECT_TRUE(batch.run([] { return false; }).ok());
  EXPECT_FALSE(batch.stopped());
  EXPECT_TRUE(is_written(99));
}

TEST_F(BatchTest, AnErrorIsOfItsRequestOnly) {
  varve::test::FaultDevice faulty(device_);
  faulty.add({.kind = IoKind::write, .times = varve::test::Fault::kForEver, .touches_block = place(17, 1)});
  io::Batch batch(faulty);
  add_writes(batch, 100);
  const Status status = batch.run();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(std::to_string(place(17, 1) << kBlockShift)), std::string::npos);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(batch.outcome_of(i).ok(), i != 17) << i;
    EXPECT_EQ(is_written(i), i != 17) << i;
  }
}

TEST_F(BatchTest, AloneItFailsInTheSameWay) {
  varve::test::FaultDevice faulty(device_);
  faulty.add({.kind = IoKind::write, .times = varve::test::Fault::kForEver, .touches_block = place(0, 1)});
  io::Batch batch(faulty);
  add_writes(batch, 1);
  EXPECT_FALSE(batch.run().ok());
  EXPECT_FALSE(batch.outcome_of(0).ok());
}

TEST(BatchOverBackends, ReadsAndWrites) {
  for (const Backend backend : {Backend::uring, Backend::threads, Backend::uring_buffered}) {
    const Opened opened = open_backend(backend, 64 << 20);
    if (!opened.device) continue;
    std::vector<AlignedBuffer> buffers;
    io::Batch batch(*opened.device);
    for (std::uint64_t i = 0; i < 300; ++i) {
      fill_pattern(buffers.emplace_back(kBlockSize).data(), 3 * i, i);
      batch.add(IoKind::write, (3 * i) << kBlockShift).add(buffers.back().data(), kBlockSize);
    }
    EXPECT_TRUE(batch.run().ok()) << name_of(backend);
    batch.clear();
    for (std::uint64_t i = 0; i < 300; ++i) {
      std::memset(buffers[i].data(), 0, kBlockSize);
      batch.add(IoKind::read, (3 * i) << kBlockShift).add(buffers[i].data(), kBlockSize);
    }
    EXPECT_TRUE(batch.run().ok()) << name_of(backend);
    for (std::uint64_t i = 0; i < 300; ++i) EXPECT_TRUE(has_pattern(buffers[i].data(), 3 * i, i)) << name_of(backend) << i;
  }
}

// A reader decodes what has come while the rest is on its way.
TEST(BatchCame, IsCalledForEach) {
  MemDevice device(1 << 20);
  AlignedBuffer memory(8 * kBlockSize);
  io::Batch batch(device, io::kManyAtOnce);
  unsigned came = 0;
  for (std::size_t i = 0; i < 8; ++i)
    batch.add(IoKind::read, i * kBlockSize, [&came](const IoRequest& request) {
      EXPECT_EQ(request.error, 0);
      ++came;
    }).add(memory.data() + i * kBlockSize, kBlockSize);
  EXPECT_TRUE(batch.run().ok());
  EXPECT_EQ(came, 8U);
}

}  // namespace
}  // namespace varve::io::test
