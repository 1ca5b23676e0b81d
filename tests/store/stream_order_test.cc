#include "changes/stream_order.h"

#include <gtest/gtest.h>

namespace varve::changes {
namespace {

constexpr Ino kFile{20}, kOther{21};

void come(StreamOrder& order, Ino ino, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) order.note(ino, first + i);
}

TEST(StreamOrder, WhatComesInOrderHasNoGap) {
  StreamOrder order;
  EXPECT_FALSE(order.has_gap());
  come(order, kFile, 256, 256);
  come(order, kFile, 512, 256);
  EXPECT_FALSE(order.has_gap());
}

TEST(StreamOrder, AMessageThatIsLateFillsItsGap) {
  StreamOrder order;
  come(order, kFile, 256, 256);
  come(order, kFile, 768, 256);
  EXPECT_TRUE(order.has_gap());
  come(order, kFile, 1024, 256);
  EXPECT_TRUE(order.has_gap());
  come(order, kFile, 512, 256);
  EXPECT_FALSE(order.has_gap());
}

TEST(StreamOrder, AChunkEndsWhereTheNextOneBegins) {
  StreamOrder order;
  come(order, kFile, 256, 256);
  order.seal();
  EXPECT_FALSE(order.has_gap());
  come(order, kFile, 768, 256);
  EXPECT_TRUE(order.has_gap()) << "the first of what comes after it is late";
  come(order, kFile, 512, 256);
  EXPECT_FALSE(order.has_gap());
}

TEST(StreamOrder, WhatComesTooLateIsNotWaitedFor) {
  StreamOrder order;
  come(order, kFile, 256, 256);
  come(order, kFile, 768, 256);
  order.seal();  // for want of memory
  EXPECT_FALSE(order.has_gap());
  come(order, kFile, 512, 256);
  EXPECT_FALSE(order.has_gap());
  come(order, kFile, 1024, 256);
  EXPECT_FALSE(order.has_gap());
}

TEST(StreamOrder, AJumpIsNoGap) {
  StreamOrder order;
  come(order, kFile, 256, 256);
  come(order, kFile, 1'000'000, 256);
  EXPECT_FALSE(order.has_gap());
}

TEST(StreamOrder, StreamsAreFollowedEachForItself) {
  StreamOrder order;
  come(order, kFile, 256, 256);
  come(order, kOther, 256, 256);
  come(order, kFile, 512, 256);
  come(order, kOther, 512, 256);
  EXPECT_FALSE(order.has_gap());
  come(order, kOther, 1024, 256);
  EXPECT_TRUE(order.has_gap());
  for (std::uint64_t n = 0; n < 4; ++n) come(order, Ino{100 + n}, 256, 1);
  EXPECT_FALSE(order.has_gap()) << "it is forgotten for others that go on";
}

}  // namespace
}  // namespace varve::changes
