// Reading ahead: what is read when, what is handed over, and what must not be.
#include "fuse/operations/read_ahead.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>

#include "device/io_context.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::fuse {
namespace {

constexpr std::size_t kRead = 1u << 20;

class ReadAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(mounted_.mount().ok());
    auto made = mounted_.make("/file", S_IFREG | 0644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    std::vector<std::byte> data(kBytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = content_at(i);
    ASSERT_TRUE(mounted_.write(file_, 0, data).ok());
    ahead_.emplace(mounted_.fs(), clock_, ReadAhead::kMostBytes);
  }

  void TearDown() override {  // as a worker before it ends
    while (reactor_->in_flight()) reactor_->wait(-1);
  }

  static std::byte content_at(std::uint64_t i) { return static_cast<std::byte>(i * 31 / 4096 + i); }
  FileRange range(std::uint64_t offset) const { return {file_, offset, kRead}; }

  // As the server does; returns the offsets of the pieces.
  std::vector<std::uint64_t> follow(std::uint64_t offset) {
    std::vector<std::uint64_t> offsets;
    for (const AheadPiecePtr& piece : ahead_->follow(range(offset), *reactor_)) {
      offsets.push_back(piece->range().offset);
      ahead_->start(piece, pool_);
    }
    return offsets;
  }
  AheadPiecePtr claim_done(std::uint64_t offset) {
    AheadPiecePtr piece = ahead_->claim(range(offset));
    bool done = piece && !piece->when_done([&done] { done = true; });
    for (int i = 0; piece && !done && i < 100; ++i) reactor_->wait(10'000'000);
    EXPECT_TRUE(!piece || done);
    return piece;
  }
  void expect_content(const AheadPiecePtr& piece, std::size_t bytes) {
    ASSERT_TRUE(piece);
    const auto content = piece->content(kRead);
    ASSERT_TRUE(content);
    ASSERT_EQ(content->size(), bytes);
    for (std::size_t i = 0; i < bytes; i += 97) ASSERT_EQ((*content)[i], content_at(piece->range().offset + i)) << i;
  }

  static constexpr std::size_t kBytes = 8 * kRead + 5000;
  io::MemDevice device_{64u << 20};
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture mounted_{device_, test::test_options(clock_, random_)};
  Ino file_;
  std::unique_ptr<io::Reactor> reactor_ = io::Reactor::make();
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  std::optional<ReadAhead> ahead_;
};

TEST_F(ReadAheadTest, BeginsWithTheSecondRequestInARowAndKeepsItsDistance) {
  EXPECT_THAT(follow(0), testing::IsEmpty());
  EXPECT_THAT(follow(kRead), testing::ElementsAre(2 * kRead, 3 * kRead, 4 * kRead, 5 * kRead));
  expect_content(claim_done(2 * kRead), kRead);
  EXPECT_THAT(follow(2 * kRead), testing::ElementsAre(6 * kRead));
  expect_content(claim_done(4 * kRead), kRead);  // out of order
  expect_content(claim_done(3 * kRead), kRead);
}

TEST_F(ReadAheadTest, EndsWithTheFile) {
  follow(4 * kRead);
  EXPECT_THAT(follow(5 * kRead), testing::ElementsAre(6 * kRead, 7 * kRead, 8 * kRead, 9 * kRead));
  expect_content(claim_done(8 * kRead), 5000);
  EXPECT_FALSE(ahead_->claim(range(9 * kRead))) << "nothing is there";
}

TEST_F(ReadAheadTest, WhatIsReadHereAndThereIsNoStream) {
  for (const std::uint64_t i : {7, 1, 6, 0}) EXPECT_THAT(follow(i * kRead), testing::IsEmpty()) << i;
  EXPECT_FALSE(ahead_->claim(range(2 * kRead)));
}

TEST_F(ReadAheadTest, AChangedFileIsNotAnsweredFromBefore) {
  follow(0);
  follow(kRead);
  const AheadPiecePtr before = claim_done(2 * kRead);
  const std::vector<std::byte> changed(4096, std::byte{1});
  ASSERT_TRUE(mounted_.write(file_, 7 * kRead, changed).ok());
  EXPECT_FALSE(before->content(kRead)) << "any change of the file counts";
  const AheadPiecePtr also_before = claim_done(3 * kRead);
  EXPECT_FALSE(also_before->content(kRead));
}

TEST_F(ReadAheadTest, ATruncatedFileIsNotAnsweredFromBefore) {
  follow(0);
  follow(kRead);
  const AheadPiecePtr before = claim_done(2 * kRead);
  fs::AttrChange change;
  change.size = kBytes + 1;
  ASSERT_TRUE(mounted_.call([&](fs::Operation& op) { return mounted_.fs().setattr(op, file_, change); }).ok());
  EXPECT_FALSE(before->content(kRead));
}

TEST_F(ReadAheadTest, PiecesThatNobodyAsksForGo) {
  follow(0);
  follow(kRead);
  while (reactor_->in_flight()) reactor_->wait(10'000'000);
  EXPECT_GE(pool_->leased_bytes(), 4 * kRead);
  clock_.advance(ReadAhead::kPatience + 1);
  ahead_->follow({Ino{99}, 0, kRead}, *reactor_);
  EXPECT_EQ(pool_->leased_bytes(), 0U);
  EXPECT_FALSE(ahead_->claim(range(2 * kRead)));
}

// As a thread does whose requests wait for memory: it takes none that could ask.
TEST_F(ReadAheadTest, PiecesGoWithoutAnyRequest) {
  follow(0);
  follow(kRead);
  while (reactor_->in_flight()) reactor_->wait(10'000'000);
  ahead_->expire();
  EXPECT_GE(pool_->leased_bytes(), 4 * kRead);
  clock_.advance(ReadAhead::kPatience + 1);
  ahead_->expire();
  EXPECT_EQ(pool_->leased_bytes(), 0U);
}

// A slow device takes longer for a piece than anybody should wait for a request.
TEST_F(ReadAheadTest, PatienceBeginsWhenAPieceHasBeenRead) {
  ahead_->follow(range(0), *reactor_);
  const std::vector<AheadPiecePtr> pieces = ahead_->follow(range(kRead), *reactor_);
  ASSERT_GE(pieces.size(), 2U);
  clock_.advance(10 * ReadAhead::kPatience);
  for (const AheadPiecePtr& piece : pieces) ahead_->start(piece, pool_);
  while (reactor_->in_flight()) reactor_->wait(10'000'000);
  ahead_->expire();
  EXPECT_TRUE(ahead_->claim(pieces[0]->range()));
  clock_.advance(ReadAhead::kPatience + 1);
  ahead_->expire();
  EXPECT_FALSE(ahead_->claim(pieces[1]->range()));
}

TEST_F(ReadAheadTest, WhatCountsIsWhatTheBuffersTake) {
  constexpr std::size_t kOdd = 260u << 10;  // in a buffer for a megabyte
  std::size_t pieces = 0;
  for (std::uint64_t ino = 100; ino < 104; ++ino)
    for (std::uint64_t i = 0; i < 3; ++i) pieces += ahead_->follow({Ino{ino}, i * kOdd, kOdd}, *reactor_).size();
  EXPECT_EQ(pieces, 8U);
}

TEST_F(ReadAheadTest, AllStreamsTogetherStayWithinTheBound) {
  std::vector<AheadPiecePtr> pieces;
  for (std::uint64_t ino = 100; ino < 120; ++ino)
    for (std::uint64_t i = 0; i < 3; ++i)
      for (auto& piece : ahead_->follow({Ino{ino}, i * kRead, kRead}, *reactor_)) pieces.push_back(std::move(piece));
  EXPECT_EQ(pieces.size(), 8U);
}

}  // namespace
}  // namespace varve::fuse
