#include "format/estimate.h"

#include <gtest/gtest.h>

namespace varve::format {
namespace {

TEST(Estimate, EightStepsMakeAnOctave) {
  EXPECT_EQ(encode_interval(1), 1);
  EXPECT_EQ(encode_interval(2), 9);
  EXPECT_EQ(encode_interval(1024), 81);
  EXPECT_EQ(decode_interval(81), 1024);
  EXPECT_EQ(decode_interval(0), 0);
}

TEST(Estimate, SaturatesAtBothEnds) {
  EXPECT_EQ(encode_interval(0), 1);
  EXPECT_EQ(encode_interval(0.001), 1);
  EXPECT_EQ(encode_interval(1e30), 255);
}

TEST(Estimate, EveryCodeSurvivesARoundTrip) {
  for (unsigned code = 1; code < 256; ++code)
    EXPECT_EQ(encode_interval(decode_interval(static_cast<std::uint8_t>(code))), code);
}

TEST(Age, GoesOnWhereStoredClocksBeginAnew) {
  constexpr std::uint64_t kAnew = 1ULL << 32;
  EXPECT_EQ(age_of(100, 100), 0U);
  EXPECT_EQ(age_of(105, 100), 5U);
  EXPECT_EQ(age_of(kAnew + 3, 3), 0U);
  EXPECT_EQ(age_of(kAnew + 3, 0xFFFF'FFFE), 5U) << "written before";
  EXPECT_EQ(age_of(7 * kAnew + 1000, 1), 999U);
}

TEST(Age, OfWhatIsWrittenMeanwhileIsNone) {
  EXPECT_EQ(age_of(100, 103), 0U);
  EXPECT_EQ(age_of((1ULL << 32) - 2, 1), 0U);
}

TEST(Estimate, TheFirstIntervalIsTakenAsItIs) { EXPECT_EQ(next_estimate(0, 4096), encode_interval(4096)); }

TEST(Estimate, ANewIntervalCountsAQuarter) {
  // 0.75 * 1024 + 0.25 * 5120 = 2048
  EXPECT_EQ(next_estimate(encode_interval(1024), 5120), encode_interval(2048));
  // 0.75 * 1024 + 0.25 * 1 = 768.25: 2^9.585, code 1 + 76.68
  EXPECT_EQ(next_estimate(encode_interval(1024), 1), 78);
}

TEST(Estimate, RatesAreReciprocal) {
  EXPECT_EQ(rate_of(0), 0u);
  EXPECT_EQ(rate_of(encode_interval(1)), 1ULL << 32);
  EXPECT_EQ(rate_of(encode_interval(65536)), 65536u);
  for (unsigned code = 1; code < 256; ++code) {
    const double exact = 4294967296.0 / decode_interval(static_cast<std::uint8_t>(code));
    EXPECT_NEAR(static_cast<double>(rate_of(static_cast<std::uint8_t>(code))), exact, 1) << code;
  }
}

}  // namespace
}  // namespace varve::format
