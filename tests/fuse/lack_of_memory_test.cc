// Memory that is lacking while pieces are read ahead.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fuse/operations/read_ahead.h"
#include "io/mem_device.h"
#include "log/io_context.h"
#include "support/failing_allocations.h"
#include "support/fs_fixture.h"

namespace varve::fuse {
namespace {

using test::FailingAllocations;

constexpr std::size_t kRead = 1u << 20;

class LackOfMemoryForPieces : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(mounted_.mount().ok());
    file_ = mounted_.make("/file", S_IFREG | 0644)->ino;
    ASSERT_TRUE(mounted_.write(file_, 0, std::vector<std::byte>(6 * kRead, std::byte{1})).ok());
  }

  // As the server does; false: no allocation was left to fail.
  bool read_ahead(ReadAhead& ahead, std::size_t nth) {
    ahead.follow(range(0), *reactor_);
    FailingAllocations failing(nth, FailingAllocations::Which::one);
    try {
      for (const AheadPiecePtr& piece : ahead.follow(range(kRead), *reactor_)) ahead.start(piece, pool_);
    } catch (const std::bad_alloc&) {  // that reader gets an error, but what of the next?
    }
    test::look_until(*reactor_, [&] { return reactor_->in_flight() == 0; });
    failing.end();
    return failing.any_failed();
  }

  // Everybody who claims a piece hears of it.
  void claim_all(ReadAhead& ahead) {
    for (std::uint64_t offset = 0; offset < 6 * kRead; offset += kRead) {
      const AheadPiecePtr piece = ahead.claim(range(offset));
      bool done = !piece || !piece->when_done([&done] { done = true; });
      test::look_until(*reactor_, [&done] { return done; });
      EXPECT_TRUE(done) << offset;
    }
  }

  FileRange range(std::uint64_t offset) const { return {file_, offset, kRead}; }

  io::MemDevice device_{64u << 20};
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture mounted_{device_, test::test_options(clock_, random_)};
  Ino file_;
  std::unique_ptr<io::Reactor> reactor_ = io::Reactor::make();
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

TEST_F(LackOfMemoryForPieces, KeepsNobodyWaiting) {
  std::size_t nth = 0;
  for (bool any_failed = true; any_failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    ReadAhead ahead(mounted_.fs(), clock_, ReadAhead::kMostBytes);
    any_failed = read_ahead(ahead, nth);
    claim_all(ahead);
    EXPECT_EQ(pool_->leased_bytes(), 0U);
  }
  EXPECT_GT(nth, 20U) << "several pieces";
}

}  // namespace
}  // namespace varve::fuse
