// What block_device.h promises, over every backend.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "io/backends.h"

namespace varve::io::test {
namespace {

constexpr std::uint64_t kBytes = 32 << 20;
constexpr std::uint64_t kBlocks = kBytes / kBlockSize;

class Contract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    opened_ = open_backend(GetParam(), kBytes);
    if (opened_.device) reactor_ = make_reactor(GetParam());
  }
  BlockDevice& device() { return *opened_.device; }
  Reactor& reactor() { return *reactor_; }

  Opened opened_;
  std::unique_ptr<Reactor> reactor_;
};

INSTANTIATE_TEST_SUITE_P(Backends, Contract,
                         testing::Values(Backend::uring, Backend::threads, Backend::uring_buffered,
                                         Backend::threads_buffered, Backend::uring_tmpfs, Backend::memory,
                                         Backend::threads_on_ring, Backend::uring_on_poll, Backend::nbd, Backend::nbd_on_poll,
                                         Backend::rbd),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Contract, Geometry) {
  EXPECT_EQ(device().geometry().size_bytes, kBytes);
  EXPECT_EQ(device().geometry().blocks(), kBlocks);
  EXPECT_FALSE(device().geometry().is_block_device);
  EXPECT_FALSE(device().read_only());
  EXPECT_FALSE(device().name().empty());
  const std::string backend = name_of(GetParam());
  if (backend.find("buffered") != std::string::npos) {
    EXPECT_FALSE(device().geometry().direct);
  }
  EXPECT_EQ(device().geometry().backend == "threads", backend.find("threads") == 0);
}

TEST_P(Contract, UnwrittenBlocksAreZeros) {
  AlignedBuffer data(4 * kBlockSize);
  ASSERT_TRUE(device().read(100 * kBlockSize, data.span()).ok());
  EXPECT_TRUE(is_zero(data.data(), data.size()));
}

TEST_P(Contract, ReadsWhatWasWritten) {
  Batch writes;
  for (std::uint64_t block = 0; block < 64; ++block) writes.write(block * 7, block);
  writes.submit_all(device(), reactor());
  EXPECT_EQ(reactor().in_flight(), 64U);
  EXPECT_EQ(writes.completed(), 0U) << "no callback inside submit()";
  drain(reactor());
  EXPECT_EQ(writes.completed(), 64U);
  Batch reads;
  for (std::uint64_t block = 0; block < 64; ++block) reads.read(block * 7);
  reads.submit_all(device(), reactor());
  reactor().kick();
  EXPECT_EQ(reads.completed(), 0U) << "no callback inside kick()";
  drain(reactor());
  EXPECT_EQ(reads.failed(), 0U);
  for (std::uint64_t block = 0; block < 64; ++block) EXPECT_TRUE(has_pattern(reads.data(block), block * 7, block));
}

TEST_P(Contract, DurableWrites) {
  Batch batch;
  batch.write(5, 1).durable = true;
  batch.write(9, 2, 3).durable = true;
  batch.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_EQ(batch.failed(), 0U);
  AlignedBuffer data(3 * kBlockSize);
  ASSERT_TRUE(device().read(9 * kBlockSize, data.span()).ok());
  EXPECT_TRUE(has_pattern(data.data(), 9, 2, 3));
}

TEST_P(Contract, LastBlock) {
  Batch batch;
  batch.write(kBlocks - 1, 3);
  batch.submit_all(device(), reactor());
  drain(reactor());
  AlignedBuffer data(kBlockSize);
  ASSERT_TRUE(device().read((kBlocks - 1) * kBlockSize, data.span()).ok());
  EXPECT_TRUE(has_pattern(data.data(), kBlocks - 1, 3));
}

TEST_P(Contract, MoreRequestsThanTheQueueIsDeep) {
  constexpr std::size_t kCount = 5000;
  Batch writes;
  for (std::size_t i = 0; i < kCount; ++i) writes.write(i, i);
  writes.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_EQ(writes.completed(), kCount);
  EXPECT_EQ(writes.failed(), 0U);
  Batch reads;
  for (std::size_t i = 0; i < kCount; ++i) reads.read(i);
  reads.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_EQ(reads.completed(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_TRUE(has_pattern(reads.data(i), i, i)) << i;
}

TEST_P(Contract, ManyPieces) {
  AlignedBuffer out(kMaxIov * kBlockSize);
  fill_pattern(out.data(), 10, 5, kMaxIov);
  IoRequest request;
  request.kind = IoKind::write;
  request.offset = 10 * kBlockSize;
  for (std::size_t i = 0; i < kMaxIov; ++i) request.add(out.data() + i * kBlockSize, kBlockSize);
  device().submit(reactor(), request);
  drain(reactor());
  EXPECT_EQ(request.error, 0);

  // Read back in reverse order of memory.
  AlignedBuffer in(kMaxIov * kBlockSize);
  IoRequest back;
  back.offset = request.offset;
  for (std::size_t i = kMaxIov; i-- > 0;) back.add(in.data() + i * kBlockSize, kBlockSize);
  device().submit(reactor(), back);
  drain(reactor());
  EXPECT_EQ(back.error, 0);
  for (std::size_t i = 0; i < kMaxIov; ++i)
    ASSERT_TRUE(has_pattern(in.data() + (kMaxIov - 1 - i) * kBlockSize, 10 + i, 5)) << i;
}

TEST_P(Contract, LargeRequest) {
  Batch batch;
  batch.write(1, 9, 4096);
  batch.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_EQ(batch.failed(), 0U);
  Batch back;
  back.read(1, 4096);
  back.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_TRUE(has_pattern(back.data(0), 1, 9, 4096));
}

TEST_P(Contract, CallbacksMaySubmit) {
  // A chain of writes, each started by the completion of the one before, then a flush.
  AlignedBuffer data(kBlockSize);
  IoRequest request;
  IoRequest flush;
  flush.kind = IoKind::flush;
  bool flushed = false;
  flush.done = [&](IoRequest&) { flushed = true; };
  unsigned written = 0;
  request.kind = IoKind::write;
  request.add(data.data(), kBlockSize);
  request.done = [&](IoRequest& self) {
    EXPECT_EQ(self.error, 0);
    self.offset += kBlockSize;
    device().submit(reactor(), ++written < 50 ? self : flush);
  };
  device().submit(reactor(), request);
  drain(reactor());
  EXPECT_EQ(written, 50U);
  EXPECT_TRUE(flushed);
}

TEST_P(Contract, FlushAndDiscard) {
  const std::size_t unit = std::max<std::size_t>(device().geometry().discard_unit / kBlockSize, 1);
  const std::uint64_t first = 20 * unit;
  Batch writes;
  writes.write(first, 1, 16 * unit);
  writes.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_TRUE(device().flush().ok());
  if (!device().geometry().supports_discard) GTEST_SKIP() << "no discard here";
  Batch discards;
  discards.discard(first + 4 * unit, 8 * unit);
  discards.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_EQ(discards.failed(), 0U);
  Batch reads;
  reads.read(first, 16 * unit);
  reads.submit_all(device(), reactor());
  drain(reactor());
  EXPECT_TRUE(has_pattern(reads.data(0), first, 1, 4 * unit));
  EXPECT_TRUE(is_zero(reads.data(0) + 4 * unit * kBlockSize, 8 * unit * kBlockSize));
  EXPECT_TRUE(has_pattern(reads.data(0) + 12 * unit * kBlockSize, first + 12 * unit, 1, 4 * unit));
}

TEST_P(Contract, RefusesWhatBreaksTheAlignment) {
  AlignedBuffer data(4 * kBlockSize);
  const auto error_of = [&](IoKind kind, std::uint64_t offset, void* address, std::size_t bytes) {
    IoRequest request;
    request.kind = kind;
    request.offset = offset;
    request.add(address, bytes);
    device().submit(reactor(), request);
    drain(reactor());
    return request.error;
  };
  EXPECT_EQ(error_of(IoKind::read, 512, data.data(), kBlockSize), EINVAL);
  EXPECT_EQ(error_of(IoKind::write, 0, data.data(), 512), EINVAL);
  EXPECT_EQ(error_of(IoKind::read, 0, data.data() + 512, kBlockSize), EINVAL);
  EXPECT_EQ(error_of(IoKind::read, kBytes, data.data(), kBlockSize), EINVAL);
  EXPECT_EQ(error_of(IoKind::write, kBytes - kBlockSize, data.data(), 2 * kBlockSize), EINVAL);
  EXPECT_EQ(error_of(IoKind::write, ~std::uint64_t{0} - kBlockSize + 1, data.data(), kBlockSize), EINVAL);
  IoRequest empty;
  device().submit(reactor(), empty);
  drain(reactor());
  EXPECT_EQ(empty.error, EINVAL);
  IoRequest too_many;
  for (std::size_t i = 0; i <= kMaxIov; ++i) too_many.add(data.data(), kBlockSize);
  device().submit(reactor(), too_many);
  drain(reactor());
  EXPECT_EQ(too_many.error, EINVAL);
}

TEST_P(Contract, ConveniencesTakeAnyAddressAndNameTheRange) {
  std::vector<std::byte> memory(2 * kBlockSize + 1);
  const std::span<std::byte> odd(memory.data() + 1, 2 * kBlockSize);
  fill_pattern(odd.data(), 3, 8, 2);
  ASSERT_TRUE(device().write(3 * kBlockSize, odd).ok());
  std::fill(memory.begin(), memory.end(), std::byte{0});
  ASSERT_TRUE(device().read(3 * kBlockSize, odd).ok());
  EXPECT_TRUE(has_pattern(odd.data(), 3, 8, 2));
  const Status beyond = device().read(kBytes, odd);
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.error().message().find(device().name()), std::string::npos);
  EXPECT_NE(beyond.error().message().find(std::to_string(kBytes)), std::string::npos);
}

TEST_P(Contract, PollAndWaitWithNothingToDo) {
  EXPECT_EQ(reactor().poll(), 0U);
  EXPECT_EQ(reactor().wait(0), 0U);
  EXPECT_EQ(reactor().wait(1'000'000), 0U);
  EXPECT_EQ(reactor().in_flight(), 0U);
}

TEST_P(Contract, PollCompletesToo) {
  Batch batch;
  batch.write(1, 1);
  batch.submit_all(device(), reactor());
  while (batch.completed() == 0) {
    reactor().poll();
    std::this_thread::yield();
  }
  EXPECT_EQ(reactor().in_flight(), 0U);
}

TEST_P(Contract, WakeEndsAWait) {
  reactor().wake();
  EXPECT_EQ(reactor().wait(-1), 0U);  // a wake before the wait counts
  std::thread other([&] { reactor().wake(); });
  reactor().wait(-1);
  other.join();
}

TEST_P(Contract, WakeIsNotLostToPoll) {
  reactor().wake();
  reactor().poll();
  reactor().wait(-1);
}

TEST_P(Contract, TasksFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 500;
  int ran = 0;  // only the owner touches it
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int task = 0; task < kTasks; ++task) reactor().post([&ran] { ++ran; });
    });
  unsigned counted = 0;
  while (ran < kThreads * kTasks) counted += reactor().wait(-1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, static_cast<unsigned>(kThreads * kTasks));
}

TEST_P(Contract, TasksWakeAndRequestsTogether) {
  // Another thread keeps waking the owner while it works: nothing may get lost, or this hangs.
  std::atomic<bool> stop{false};
  std::atomic<int> posted{0};
  int ran = 0;
  std::thread other([&] {
    while (!stop) {
      reactor().post([&ran] { ++ran; });
      ++posted;
      reactor().wake();
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 100; ++round) {
    Batch batch;
    for (std::uint64_t block = 0; block < 8; ++block) batch.write(block, block);
    batch.submit_all(device(), reactor());
    drain(reactor());
    ASSERT_EQ(batch.failed(), 0U);
  }
  stop = true;
  other.join();
  while (ran < posted) reactor().wait(-1);
  EXPECT_EQ(ran, posted);
}

TEST_P(Contract, WatchIsLevelTriggered) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int calls = 0;
  reactor().watch(ends[0], [&] { ++calls; });
  reactor().wait(0);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  while (calls < 3) reactor().wait(-1);  // unread data calls again and again
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  reactor().wait(0);
  reactor().wait(0);
  const int settled = calls;
  reactor().wait(1'000'000);
  EXPECT_EQ(calls, settled);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  while (calls == settled) reactor().wait(-1);
  reactor().unwatch(ends[0]);
  const int last = calls;
  reactor().wait(1'000'000);
  EXPECT_EQ(calls, last);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(Contract, WatchMayEndItself) {
  const int event = ::eventfd(1, EFD_NONBLOCK);
  int calls = 0;
  reactor().watch(event, [&] {
    ++calls;
    reactor().unwatch(event);
  });
  while (calls == 0) reactor().wait(-1);
  reactor().wait(1'000'000);
  EXPECT_EQ(calls, 1);
  // And be replaced from inside a callback.
  int second = 0;
  reactor().watch(event, [&] { reactor().watch(event, [&] { ++second; }); });
  while (second == 0) reactor().wait(-1);
  reactor().unwatch(event);
  ::close(event);
}

TEST_P(Contract, WatchOfAClosedPipeFires) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int calls = 0;
  reactor().watch(ends[0], [&] { ++calls; });
  reactor().poll();
  ::close(ends[1]);
  while (calls == 0) reactor().wait(-1);
  reactor().unwatch(ends[0]);
  ::close(ends[0]);
}

TEST_P(Contract, QueuesOfSeveralThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t part = 0; part < 4; ++part)
    threads.emplace_back([&, part] {
      const auto own = make_reactor(GetParam());
      Batch writes;
      for (std::uint64_t i = 0; i < 300; ++i) writes.write(part * 1000 + i, part);
      writes.submit_all(device(), *own);
      drain(*own);
      Batch reads;
      for (std::uint64_t i = 0; i < 300; ++i) reads.read(part * 1000 + i);
      reads.submit_all(device(), *own);
      drain(*own);
      for (std::uint64_t i = 0; i < 300; ++i)
        if (!has_pattern(reads.data(i), part * 1000 + i, part)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A reactor may get the memory of one that has gone, of whatever thread: for the thread sanitizer, which takes that for a race
// where it does not see the memory go.
TEST_P(Contract, QueuesOfThreadsOneAfterTheOther) {
  std::atomic<unsigned> turn{0};
  auto use_one = [&](unsigned mine) {
    while (turn.load(std::memory_order_relaxed) != mine) std::this_thread::yield();
    {
      const auto own = make_reactor(GetParam());
      Batch writes;
      for (std::uint64_t i = 0; i < 100; ++i) writes.write(i, mine);
      writes.submit_all(device(), *own);
      drain(*own);
    }
    turn.store(mine + 1, std::memory_order_relaxed);
  };
  std::vector<std::thread> threads;
  for (unsigned mine = 0; mine < 4; ++mine) threads.emplace_back(use_one, mine);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn, 4U);
}

TEST_P(Contract, MadeHereUsedThere) {
  std::thread other([&] {
    Batch batch;
    batch.write(5, 5);
    batch.submit_all(device(), reactor());
    drain(reactor());
    EXPECT_EQ(batch.failed(), 0U);
    reactor_.reset();
  });
  other.join();
}

TEST_P(Contract, QueueThrownAwayWithRequestsInFlight) {
  Batch batch;
  for (std::uint64_t i = 0; i < 100; ++i) batch.write(i, i);
  batch.submit_all(device(), reactor());
  reactor().kick();
  reactor_.reset();
  EXPECT_TRUE(device().flush().ok());
}

TEST(TinyRing, DepthOfOne) {
  for (const Backend backend : {Backend::threads, Backend::uring}) {
    const Opened opened = open_backend(backend, 1 << 20);
    if (!opened.device) GTEST_SKIP() << "no " << name_of(backend) << " here";
    const auto reactor = make_reactor(backend, 1);
    Batch batch;
    for (std::uint64_t i = 0; i < 100; ++i) batch.write(i, i);
    batch.flush();
    batch.discard(0, 1);
    batch.submit_all(*opened.device, *reactor);
    drain(*reactor);
    EXPECT_EQ(batch.completed(), 102U);
    EXPECT_EQ(batch.failed(), 0U);
  }
}

}  // namespace
}  // namespace varve::io::test
