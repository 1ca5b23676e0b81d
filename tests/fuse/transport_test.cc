// Messages in, replies out, over a fake kernel.
#include "fuse/transport/device_transport.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "base/errc.h"
#include "base/page_size.h"
#include "fuse/fake_kernel.h"
#include "io/mem_device.h"

namespace varve::fuse {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

struct Recorder : MessageSink {
  void prepare() override {}
  void receive(Message& message) override {
    Bytes bytes(sizeof(fuse_in_header));
    std::memcpy(bytes.data(), &message.header(), bytes.size());
    for (const auto part : {message.arguments(), message.payload()}) bytes.insert(bytes.end(), part.begin(), part.end());
    messages.push_back(bytes);
    payloads.push_back(reinterpret_cast<std::uintptr_t>(message.payload().data()));
    if (keep) kept.push_back(&message);
    else message.release();
  }
  void disconnected(int error) override { end = error; }

  bool keep = false;
  std::vector<Bytes> messages;
  std::vector<std::uintptr_t> payloads;
  std::vector<Message*> kept;
  std::optional<int> end;
};

class TransportTest : public ::testing::Test {
 protected:
  void poll_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 100 && !condition(); ++i) reactor->wait(kSecond / 10);
    ASSERT_TRUE(condition());
  }

  // As a serving thread does; false when it has looked often enough.
  bool serve_until(Port& port, const std::function<bool()>& condition, int looks = 500) {
    for (int i = 0; i < looks && !condition(); ++i) {
      const std::int64_t rest = port.rest();
      reactor->wait(rest < 0 ? kSecond / 100 : std::min(rest, kSecond / 100));
    }
    return condition();
  }
  bool last_is(const std::string& name) const {
    if (sink.messages.empty()) return false;
    const Bytes& last = sink.messages.back();
    return Bytes(last.begin() + sizeof(fuse_in_header), last.end()) == name_bytes(name);
  }

  io::MemDevice device{8 << 20};
  std::unique_ptr<io::Reactor> reactor = io::Reactor::make();
  std::shared_ptr<BufferPool> pool = std::make_shared<BufferPool>();
  FakeKernel kernel;
  DeviceTransport transport{kernel.daemon_end()};
  Recorder sink;
};

TEST_F(TransportTest, DeliversWholeMessagesInOrder) {
  const auto port = transport.open(*reactor, pool, sink);
  for (int i = 0; i < 200; ++i) kernel.send(FUSE_LOOKUP, 1, name_bytes(std::to_string(i)));
  poll_until([&] { return sink.messages.size() == 200; });
  EXPECT_EQ(sink.messages[199].size(), sizeof(fuse_in_header) + 4);
  EXPECT_EQ(Bytes(sink.messages[7].begin() + sizeof(fuse_in_header), sink.messages[7].end()), name_bytes("7"));
}

TEST_F(TransportTest, PayloadOfAWriteIsPageAligned) {
  const auto port = transport.open(*reactor, pool, sink);
  kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(4096));
  poll_until([&] { return sink.messages.size() == 1; });
  EXPECT_EQ(sink.payloads[0] % 4096, 0U);
}

TEST_F(TransportTest, AMessageOfTheLargestSizeFits) {
  const auto port = transport.open(*reactor, pool, sink);
  kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(1 << 20, std::byte{7}));
  poll_until([&] { return sink.messages.size() == 1; });
  EXPECT_EQ(sink.messages[0].size(), kWriteHeaderBytes + (1 << 20));
  EXPECT_EQ(sink.messages[0].back(), std::byte{7});
}

TEST_F(TransportTest, AMessageIsNotOverwrittenBeforeItIsReleased) {
  sink.keep = true;
  const auto port = transport.open(*reactor, pool, sink);
  for (const char value : {'1', '2'}) kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(32768, std::byte(value)));
  for (const char value : {'3', '4'}) kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(8192, std::byte(value)));  // copied
  poll_until([&] { return sink.messages.size() == 4; });
  EXPECT_EQ(std::set(sink.payloads.begin(), sink.payloads.end()).size(), 4U);
  EXPECT_EQ(sink.kept[0]->payload()[32767], std::byte('1'));
  EXPECT_EQ(sink.kept[1]->payload()[0], std::byte('2'));
  EXPECT_EQ(sink.kept[2]->payload()[8191], std::byte('3'));
  EXPECT_EQ(sink.kept[3]->payload()[0], std::byte('4'));
  EXPECT_GE(pool->leased_bytes(), 2 * (BufferPool::kMaxBytes + BufferPool::size_for(8192 + kWriteHeaderBytes)));
  for (Message* message : sink.kept) message->release();
  EXPECT_LE(pool->leased_bytes(), BufferPool::kMaxBytes);
}

// So that what was written need not be copied; and the message's end is not that of its bytes.
TEST_F(TransportTest, ALargePayloadCanBeKept) {
  sink.keep = true;
  const auto port = transport.open(*reactor, pool, sink);
  kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(1 << 20, std::byte{7}));
  kernel.send(FUSE_WRITE, 1, bytes_of(fuse_write_in{}) + Bytes(4096, std::byte{8}));
  poll_until([&] { return sink.messages.size() == 2; });
  const std::span<const std::byte> bytes = sink.kept[0]->payload();
  const log::PayloadBufferPtr kept = sink.kept[0]->keep_payload();
  ASSERT_TRUE(kept);
  EXPECT_FALSE(sink.kept[1]->keep_payload()) << "holds far more memory than it needs";
  for (Message* message : sink.kept) message->release();
  EXPECT_EQ(bytes[(1 << 20) - 1], std::byte{7});
}

TEST_F(TransportTest, AMessageIsAnsweredByAnyThread) {
  sink.keep = true;
  const auto port = transport.open(*reactor, pool, sink);
  kernel.send(FUSE_READ, 1, bytes_of(fuse_read_in{}));
  poll_until([&] { return sink.messages.size() == 1; });
  Message& message = *sink.kept[0];
  const auto room = message.reply_room(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room.data()) % 4096, 0U);
  std::ranges::fill(room, std::byte{3});
  std::thread([&] { EXPECT_EQ(message.reply(0, bytes_of(std::uint64_t{1}), room), 0); }).join();
  message.release();
  const auto reply = kernel.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->unique, message.header().unique);
  EXPECT_EQ(reply->body.size(), 5008U);
  EXPECT_EQ(reply->body.back(), std::byte{3});
}

TEST_F(TransportTest, PausesAndGoesOn) {
  const auto port = transport.open(*reactor, pool, sink);
  port->pause();
  kernel.send(FUSE_GETATTR, 1, {});
  for (int i = 0; i < 3; ++i) reactor->wait(kSecond / 100);
  EXPECT_TRUE(sink.messages.empty());
  port->resume();
  poll_until([&] { return sink.messages.size() == 1; });
}

TEST_F(TransportTest, TellsTheEndOnce) {
  const auto port = transport.open(*reactor, pool, sink);
  kernel.hang_up();
  poll_until([&] { return sink.end.has_value(); });
  EXPECT_EQ(*sink.end, 0);
  port->resume();
  EXPECT_EQ(reactor->poll(), 0U) << "watches on after the end";
}

TEST_F(TransportTest, AnErrorOfReadingThatPasses) {
  const auto memory = std::make_shared<LargeMemory>(BufferPool::kMaxBytes);
  const auto part = memory->bytes().first(BufferPool::kMaxBytes);
  const auto unwritable = std::make_shared<BufferPool>(0, memory, part);
  ASSERT_EQ(::mprotect(part.data(), part.size(), PROT_NONE), 0);
  const auto port = transport.open(*reactor, unwritable, sink);
  kernel.send(FUSE_LOOKUP, 1, name_bytes("first"));
  EXPECT_FALSE(serve_until(*port, [&] { return !sink.messages.empty() || sink.end; }, 20));
  EXPECT_FALSE(sink.end);
  ASSERT_EQ(::mprotect(part.data(), part.size(), PROT_READ | PROT_WRITE), 0);
  kernel.send(FUSE_LOOKUP, 1, name_bytes("second"));
  EXPECT_TRUE(serve_until(*port, [&] { return last_is("second"); }));
  kernel.hang_up();
  EXPECT_TRUE(serve_until(*port, [&] { return sink.end.has_value(); }));
}

// No mapping of the size of a message's buffer, as long as it lives.
class NoRoomForBuffers {
 public:
  NoRoomForBuffers() {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit now{pages * kernel_page_bytes() + BufferPool::kMaxBytes / 2, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &now), 0);
  }
  // An emulator of another processor takes the limit without a word, and does nothing.
  static bool is_heeded() {
    void* const memory = ::mmap(nullptr, BufferPool::kMaxBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) ::munmap(memory, BufferPool::kMaxBytes);
    return memory == MAP_FAILED;
  }
  ~NoRoomForBuffers() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST_F(TransportTest, ALackOfBuffersPasses) {
  const auto port = transport.open(*reactor, pool, sink);
  kernel.send(FUSE_LOOKUP, 1, name_bytes("patient"));
  {
    const NoRoomForBuffers none;
    if (!NoRoomForBuffers::is_heeded()) GTEST_SKIP() << "an emulator that ignores RLIMIT_AS";
    for (int i = 0; i < 10; ++i) {
      EXPECT_NO_THROW(reactor->wait(kSecond / 1000));
      port->rest();
    }
  }
  EXPECT_THAT(sink.messages, testing::IsEmpty());
  EXPECT_TRUE(serve_until(*port, [&] { return last_is("patient"); }));
}

TEST_F(TransportTest, WhatIsSentGoesOutWhole) {
  const Bytes data(100'000, std::byte{9});
  fuse_out_header header{static_cast<std::uint32_t>(sizeof(fuse_out_header) + data.size()), 0, 42};
  const iovec parts[] = {{&header, sizeof header}, {const_cast<std::byte*>(data.data()), data.size()}};
  EXPECT_EQ(transport.send(parts), 0);
  const auto reply = kernel.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->unique, 42U);
  EXPECT_EQ(reply->body, data);
  kernel.hang_up();
  EXPECT_EQ(transport.send(parts), 0) << "nobody to reply to is no error";
}

TEST(BufferPool, TheLargestComeFromTheLargeMemoryAsLongAsItLasts) {
  const auto memory = std::make_shared<LargeMemory>(2 * BufferPool::kMaxBytes);
  const auto part = memory->bytes().first(2 * BufferPool::kMaxBytes);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(part.data()) % (2u << 20), 0U);
  BufferPool pool(0, memory, part);
  auto inside = [&](const Lease& lease) { return lease.data() >= part.data() && lease.data() < part.data() + part.size(); };
  EXPECT_FALSE(inside(pool.take(1)));
  Lease first = pool.take(BufferPool::kMaxBytes), second = pool.take(BufferPool::kMaxBytes);
  EXPECT_TRUE(inside(first));
  EXPECT_TRUE(inside(second));
  EXPECT_NE(first.data(), second.data());
  EXPECT_FALSE(inside(pool.take(BufferPool::kMaxBytes)));
  first.reset();
  EXPECT_TRUE(inside(pool.take(BufferPool::kMaxBytes)));
}

std::size_t resident_pages(std::span<std::byte> memory) {
  std::vector<unsigned char> pages(memory.size() / BufferPool::kPage);
  EXPECT_EQ(::mincore(memory.data(), memory.size(), pages.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }));
}

TEST(BufferPool, WhatItKeepsForReuseFollowsItsBound) {
  if (kernel_page_bytes() != BufferPool::kPage) GTEST_SKIP() << "the pages of this kernel are larger";
  constexpr std::size_t kBuffers = 4, kPagesOfOne = BufferPool::kMaxBytes / BufferPool::kPage;
  const auto memory = std::make_shared<LargeMemory>(kBuffers * BufferPool::kMaxBytes);
  const auto part = memory->bytes().first(kBuffers * BufferPool::kMaxBytes);
  BufferPool pool(kBuffers * BufferPool::kMaxBytes, memory, part);
  auto use_all = [&] {
    std::vector<Lease> leases;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      leases.push_back(pool.take(BufferPool::kMaxBytes));
      std::memset(leases.back().data(), static_cast<int>(i + 1), leases.back().size());
    }
    for (std::size_t i = 0; i < kBuffers; ++i)
      EXPECT_EQ(std::ranges::count(std::span(leases[i].data(), leases[i].size()), std::byte(i + 1)), leases[i].size());
  };
  use_all();
  EXPECT_EQ(resident_pages(part), kBuffers * kPagesOfOne);
  Lease lent = pool.take(BufferPool::kMaxBytes);
  std::memset(lent.data(), 9, lent.size());
  pool.keep(BufferPool::kMaxBytes / 2);
  EXPECT_EQ(resident_pages(part), kPagesOfOne) << "one is lent, and none of the others is kept";
  EXPECT_EQ(std::ranges::count(std::span(lent.data(), lent.size()), std::byte{9}), lent.size()) << "nobody touches what is lent";
  lent.reset();
  EXPECT_EQ(resident_pages(part), kPagesOfOne);
  use_all();
  EXPECT_EQ(resident_pages(part), kPagesOfOne) << "it stays so";
  pool.keep(kBuffers * BufferPool::kMaxBytes);
  use_all();
  EXPECT_EQ(resident_pages(part), kBuffers * kPagesOfOne);
}

// As a daemon with the option mlock.
TEST(BufferPool, LockedMemoryStaysInUse) {
  constexpr std::size_t kBuffers = 4;
  const auto memory = std::make_shared<LargeMemory>(kBuffers * BufferPool::kMaxBytes);
  const auto part = memory->bytes().first(kBuffers * BufferPool::kMaxBytes);
  if (::mlock(part.data(), part.size()) != 0) GTEST_SKIP() << "so much cannot be locked: " << errno_text();
  BufferPool pool(kBuffers * BufferPool::kMaxBytes, memory, part);
  auto take_all = [&] {
    std::vector<Lease> leases;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      leases.push_back(pool.take(BufferPool::kMaxBytes));
      EXPECT_TRUE(leases.back().data() >= part.data() && leases.back().data() < part.data() + part.size()) << i;
    }
    return leases;
  };
  std::vector<Lease> leases = take_all();
  pool.keep(BufferPool::kMaxBytes / 2);
  leases.clear();
  leases = take_all();
  leases.clear();
  pool.keep(BufferPool::kMaxBytes / 2);
  leases = take_all();
}

TEST(BufferPool, ThreadsUseItWhileItsBoundChanges) {
  constexpr std::size_t kBuffers = 4, kMost = kBuffers * BufferPool::kMaxBytes;
  const auto memory = std::make_shared<LargeMemory>(kMost);
  BufferPool pool(kMost, memory, memory->bytes().first(kMost));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&pool, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const auto mark = std::byte(t + 1);
        const Lease lease = pool.take(BufferPool::kSizes[i % BufferPool::kSizes.size()]);
        for (std::size_t at = 0; at < lease.size(); at += BufferPool::kPage) lease.data()[at] = mark;
        for (std::size_t at = 0; at < lease.size(); at += BufferPool::kPage) EXPECT_EQ(lease.data()[at], mark);
      }
    });
  for (unsigned i = 0; i < 200; ++i) pool.keep(i % 2 ? kMost : BufferPool::kMaxBytes / 2);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.leased_bytes(), 0U);
}

TEST(BufferPool, GivesAlignedBuffersAndReusesThem) {
  BufferPool pool;
  std::byte* first = nullptr;
  {
    const Lease lease = pool.take(100);
    first = lease.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, 0U);
    EXPECT_EQ(pool.leased_bytes(), lease.size());
  }
  EXPECT_EQ(pool.leased_bytes(), 0U);
  EXPECT_EQ(pool.take(4096).data(), first);
  EXPECT_GE(pool.take(BufferPool::kMaxBytes).size(), (1U << 20) + 80);
}

// As some ARM machines have: what is on loan is what it takes in memory.
TEST(BufferPool, CountsWholePagesOfTheKernel) {
  constexpr std::size_t kLargePage = 16384;
  BufferPool pool(4U << 20, nullptr, {}, kLargePage);
  std::vector<Lease> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(pool.take(100));
  EXPECT_EQ(pool.leased_bytes(), 10 * kLargePage);
  leases.clear();
  EXPECT_EQ(pool.leased_bytes(), 0U);
  EXPECT_EQ(BufferPool::size_for(100, kLargePage), kLargePage);
  EXPECT_EQ(BufferPool::size_for(BufferPool::kMaxBytes, kLargePage) % kLargePage, 0U);
  const Lease large = pool.take(BufferPool::kMaxBytes);
  EXPECT_EQ(pool.leased_bytes(), BufferPool::size_for(BufferPool::kMaxBytes, kLargePage));
}

}  // namespace
}  // namespace varve::fuse
