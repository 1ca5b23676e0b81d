// Callbacks that throw, over every backend: what a reactor must not lose by that.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <new>

#include "io/backends.h"

namespace varve::io::test {
namespace {

class Exceptions : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    opened_ = open_backend(GetParam(), 1 << 20);
    if (opened_.device) reactor_ = make_reactor(GetParam());
  }

  Opened opened_;
  std::unique_ptr<Reactor> reactor_;
};

INSTANTIATE_TEST_SUITE_P(Backends, Exceptions, testing::Values(Backend::uring, Backend::threads, Backend::memory),
                         [](const auto& test) { return name_of(test.param); });

// Waits until it is so, or has waited long enough; returns how often a wait threw.
int wait_in_spite_of_exceptions(Reactor& reactor, const std::function<bool()>& condition) {
  int thrown = 0;
  for (int i = 0; i < 3000 && !condition(); ++i) {
    try {
      reactor.wait(10'000'000);
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  }
  return thrown;
}

TEST_P(Exceptions, OfACompletionKeepNoOtherFromComing) {
  Batch batch;
  for (std::uint64_t block = 0; block < 100; ++block) batch.write(block, block);
  int throwing = 0;
  batch[3].done = batch[40].done = [&](IoRequest&) {
    ++throwing;
    throw std::bad_alloc();
  };
  IoRequest rejected[2];  // empty ones
  int refused = 0;
  rejected[0].done = rejected[1].done = [&](IoRequest&) {
    ++refused;
    throw std::bad_alloc();
  };
  batch.submit_all(*opened_.device, *reactor_);
  for (IoRequest& request : rejected) opened_.device->submit(*reactor_, request);
  EXPECT_GE(wait_in_spite_of_exceptions(*reactor_, [&] { return reactor_->in_flight() == 0; }), 1);
  EXPECT_EQ(batch.completed(), 98U);
  EXPECT_EQ(throwing, 2);
  EXPECT_EQ(refused, 2);
}

TEST_P(Exceptions, OfATaskKeepNoOtherFromRunning) {
  int ran = 0;
  reactor_->post([] { throw std::bad_alloc(); });
  for (int i = 0; i < 3; ++i) reactor_->post([&ran] { ++ran; });
  EXPECT_EQ(wait_in_spite_of_exceptions(*reactor_, [&] { return ran == 3; }), 1);
  EXPECT_EQ(ran, 3);
}

TEST_P(Exceptions, OfAWatchDoNotEndIt) {
  const int event = ::eventfd(1, EFD_NONBLOCK);
  int calls = 0;
  reactor_->watch(event, [&] {
    if (++calls < 3) throw std::bad_alloc();
  });
  EXPECT_EQ(wait_in_spite_of_exceptions(*reactor_, [&] { return calls == 3; }), 2);
  EXPECT_EQ(calls, 3);
  // Unless it has ended itself.
  reactor_->watch(event, [&] {
    ++calls;
    reactor_->unwatch(event);
    throw std::bad_alloc();
  });
  EXPECT_EQ(wait_in_spite_of_exceptions(*reactor_, [&] { return calls == 4; }), 1);
  reactor_->wait(1'000'000);
  EXPECT_EQ(calls, 4);
  ::close(event);
}

}  // namespace
}  // namespace varve::io::test
