// What the kernel is asked to write back.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <system_error>

#include "fuse/operations/cache_flusher.h"
#include "fuse/served_mount.h"
#include "support/waiting.h"

namespace varve::fuse {
namespace {

TEST(Flushing, WritesBackWhatTheKernelStillKnows) {
  ServedMount mount;
  mount.initialise();
  std::vector<std::uint64_t> files;
  for (const char* name : {"a", "b", "c", "forgotten"}) files.push_back(mount.create(1, name).nodeid);
  mount.kernel().send(FUSE_FORGET, files.back(), bytes_of(fuse_forget_in{1}));
  ASSERT_EQ(mount.kernel().call(FUSE_STATFS, 1).error, 0);  // after that
  const unsigned before = mount.kernel().notifications();
  mount.session().write_back();
  ASSERT_EQ(mount.kernel().call(FUSE_STATFS, 1).error, 0);
  EXPECT_EQ(mount.kernel().notifications() - before, 3U);
}

// In which WRITEs are on their way until they are let go.
class BusyTransport : public Transport {
 public:
  std::unique_ptr<Port> open(io::Reactor&, const std::shared_ptr<BufferPool>&, MessageSink&) override { return nullptr; }
  int send(std::span<const iovec>) override { return 0; }
  bool settle(std::size_t, const Arrivals::Limits&) override {
    ++waiting;
    freed_.wait();
    return true;
  }
  Arrivals::Writes writes() const override { return {}; }
  void let_go() { free_.set_value(); }

  std::atomic<unsigned> waiting{0};

 private:
  std::promise<void> free_;
  const std::shared_future<void> freed_ = free_.get_future().share();
};

constexpr auto kNotYet = std::future_status::timeout;
constexpr auto kAWhile = std::chrono::milliseconds(100);

// A snapshot may take two minutes of that, and a thread that waits for an answer about one file keeps others from writing to it.
TEST(Flushing, OfOneFileDoesNotWaitForThatOfAll) {
  BusyTransport transport;
  CacheFlusher flusher(transport);
  std::promise<void> all, one;
  flusher.flush_all("/nowhere", 64, [&] { all.set_value(); });
  test::wait_until([&] { return transport.waiting == 1; });
  flusher.flush(Ino{7}, 0, [&] { one.set_value(); });
  one.get_future().wait();
  auto done = all.get_future();
  EXPECT_EQ(done.wait_for(kAWhile), kNotYet);
  transport.let_go();
  done.wait();
}

TEST(Flushing, OfManyFilesWaitsForWritesOnce) {
  BusyTransport transport;
  CacheFlusher flusher(transport);
  flusher.wait_for_writes_too(64);
  std::promise<void> first, all;
  flusher.flush(Ino{7}, 0, [&] { first.set_value(); });
  test::wait_until([&] { return transport.waiting == 1; });
  for (std::uint64_t ino = 8; ino < 18; ++ino) flusher.flush(Ino{ino}, 0, [&all, ino] { if (ino == 17) all.set_value(); });
  transport.let_go();
  all.get_future().wait();
  EXPECT_EQ(transport.waiting, 2U);
}

[[noreturn]] void begin_with_one_thread_more() {
  constexpr uid_t kNobodyElse = 1'987'654'321;
  const rlimit two{2, 2};
  if (::setresuid(kNobodyElse, kNobodyElse, kNobodyElse) != 0 || ::setrlimit(RLIMIT_NPROC, &two) != 0) std::_Exit(2);
  BusyTransport transport;
  try {
    const CacheFlusher flusher(transport);
    std::_Exit(3);
  } catch (const std::system_error&) {
    std::_Exit(0);
  }
}

TEST(Flushing, WithoutASecondThreadIsAnErrorAndNotTheEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user without other processes";
  EXPECT_EXIT(begin_with_one_thread_more(), ::testing::ExitedWithCode(0), "");
}

// It has let go of pages whose WRITEs nobody has answered.
TEST(Flushing, OfAnOlderKernelWaitsForItsWrites) {
  BusyTransport transport;
  CacheFlusher flusher(transport);
  flusher.wait_for_writes_too(64);
  std::promise<void> one;
  flusher.flush(Ino{7}, 0, [&] { one.set_value(); });
  auto done = one.get_future();
  test::wait_until([&] { return transport.waiting == 1; });
  EXPECT_EQ(done.wait_for(kAWhile), kNotYet);
  transport.let_go();
  done.wait();
}

}  // namespace
}  // namespace varve::fuse
