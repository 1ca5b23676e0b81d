// Memory that is lacking anywhere in an operation: it is answered once, and not before what it has begun has come.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "io/mem_device.h"
#include "log/io_context.h"
#include "support/failing_allocations.h"
#include "support/fs_fixture.h"

namespace varve::fs {
namespace {

using test::FailingAllocations;

constexpr std::size_t kParts = 6;  // of the file: a block and a hole each

class LackOfMemory : public ::testing::TestWithParam<FailingAllocations::Which> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(mounted_.mount().ok());
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(mounted_.make("/" + std::to_string(i), S_IFREG | 0644).ok());
    file_ = mounted_.make("/file", S_IFREG | 0644)->ino;
    for (std::size_t i = 0; i < kParts; ++i) {
      const std::vector<std::byte> data(kBlockSize, std::byte(i + 1));
      ASSERT_TRUE(mounted_.write(file_, 2 * i * kBlockSize, data).ok());
    }
  }

  void forget_what_was_read() {
    ASSERT_TRUE(mounted_.unmount().ok());
    ASSERT_TRUE(mounted_.mount().ok());
  }

  // False: no allocation was left to fail.
  bool read(std::size_t nth) {
    Operation operation(mounted_.fs().engine(), {}, reactor_.get());
    AlignedBuffer buffer((2 * kParts - 1) * kBlockSize);
    std::optional<Result<std::size_t>> answer;
    std::size_t answers = 0, in_flight = 0;
    reactor_->wait(0);  // what it needs itself, it has
    FailingAllocations failing(nth, GetParam());
    EXPECT_NO_THROW(run(
        operation, [&] { return mounted_.fs().read(operation, file_, 0, buffer.span()); },
        [&](Result<std::size_t> result) {
          ++answers;
          in_flight = reactor_->in_flight();
          answer = std::move(result);
        }));
    test::look_until(*reactor_, [&] { return answers && !reactor_->in_flight(); });
    failing.end();
    EXPECT_EQ(answers, 1U);
    EXPECT_EQ(in_flight, 0U) << "answered too early";
    if (answer) check(*answer, buffer);
    return failing.any_failed();
  }

  static void check(const Result<std::size_t>& answer, const AlignedBuffer& buffer) {
    if (!answer.ok()) {
      EXPECT_TRUE(answer.fails_with(Errc::no_memory)) << answer.error().message();
      return;
    }
    EXPECT_EQ(*answer, buffer.size());
    for (std::size_t i = 0; i < kParts; ++i) EXPECT_EQ(buffer.data()[2 * i * kBlockSize], std::byte(i + 1));
  }

  io::MemDevice device_{64u << 20};
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture mounted_{device_, test::test_options(clock_, random_)};
  Ino file_;
  std::unique_ptr<io::Reactor> reactor_ = io::Reactor::make();
};

TEST_P(LackOfMemory, IsAnsweredWhenNothingIsInFlight) {
  std::size_t nth = 0;
  for (bool any_failed = true; any_failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    forget_what_was_read();
    any_failed = read(nth);
  }
  EXPECT_GT(nth, 40U) << "a read that takes some steps";
}

// What is half staged or half sealed cannot be taken back: either the process ends, or all is as it was answered.
class LackOfMemoryForChanges : public LackOfMemory {
 protected:
  static constexpr int kNoneFailed = 3, kWrong = 4;

  void SetUp() override {
    AlignedBuffer zeros = AlignedBuffer::zeroed(1u << 20);
    for (std::uint64_t at = 0; at < device_.geometry().size_bytes; at += zeros.size())
      ASSERT_TRUE(device_.write(at, zeros.span()).ok());  // so that the device needs no memory later
    LackOfMemory::SetUp();
  }

  template <class Change>
  static bool succeeds(Change&& change) {
    try {
      return change().ok();
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  bool write() {
    return succeeds([this] { return mounted_.write(file_, kBlockSize, data_); });
  }
  bool name() {
    return succeeds([this] { return mounted_.make("/made", S_IFREG | 0644); });
  }
  bool sync() {
    return succeeds([this] { return mounted_.call([this](Operation& op) { return mounted_.fs().sync(op); }); });
  }
  bool has_all(test::FsFixture& fixture) {
    const auto content = fixture.read(file_, kBlockSize, data_.size());
    return content.ok() && *content == data_ && fixture.resolve("/made").ok();
  }

  // In a process of its own.
  [[noreturn]] void change(std::size_t nth) {
    FailingAllocations failing(nth, GetParam());
    const bool written = write(), named = name(), synced = sync();
    failing.end();
    if ((!written && !write()) || (!named && !name()) || (!(written && named && synced) && !sync())) std::_Exit(kWrong);
    const auto crashed = device_.snapshot();
    test::FsFixture recovered(*crashed, test::test_options(clock_, random_));
    if (!has_all(mounted_) || !recovered.mount().ok() || !has_all(recovered)) std::_Exit(kWrong);
    std::_Exit(failing.any_failed() ? 0 : kNoneFailed);
  }

  const std::vector<std::byte> data_ = std::vector<std::byte>(4 * kBlockSize, std::byte{77});
};

TEST_P(LackOfMemoryForChanges, LosesNothingThatWasAnswered) {
  std::size_t nth = 0;
  for (bool any_failed = true; any_failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    const auto is_well = [&any_failed](int status) {
      any_failed = !WIFEXITED(status) || WEXITSTATUS(status) != kNoneFailed;
      return WIFEXITED(status) ? WEXITSTATUS(status) != kWrong : WTERMSIG(status) == SIGABRT;
    };
    EXPECT_EXIT(change(nth), is_well, "");
  }
  EXPECT_GT(nth, 40U) << "three operations";
}

INSTANTIATE_TEST_SUITE_P(Once, LackOfMemoryForChanges, testing::Values(FailingAllocations::Which::one));
INSTANTIATE_TEST_SUITE_P(FromThenOn, LackOfMemoryForChanges, testing::Values(FailingAllocations::Which::all_from_it));
INSTANTIATE_TEST_SUITE_P(Once, LackOfMemory, testing::Values(FailingAllocations::Which::one));
INSTANTIATE_TEST_SUITE_P(FromThenOn, LackOfMemory, testing::Values(FailingAllocations::Which::all_from_it));

}  // namespace
}  // namespace varve::fs
