#include "base/duration.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(Duration, is_read_as_people_write_it) {
  for (const auto& [text, seconds] : {std::pair{"0", 0U}, {"30", 30U}, {"30s", 30U}, {"10m", 600U}, {"1h", 3600U}, {"2d", 172'800U}})
    EXPECT_EQ(*parse_duration(text), seconds) << text;
  for (const char* const text : {"", "s", "1w", "1hh", "-1", "1.5h", " 1h", "1h ", "99999999999999999999", "1000000d", "off"})
    EXPECT_TRUE(parse_duration(text).fails_with(Errc::invalid)) << text;
}

TEST(Duration, is_written_in_the_largest_unit_that_divides_it) {
  for (const auto& [seconds, text] : {std::pair{0U, "0s"}, {45U, "45s"}, {90U, "90s"}, {600U, "10m"}, {5400U, "90m"}, {3600U, "1h"},
                                      {86'400U, "1d"}}) {
    EXPECT_EQ(duration_text(seconds), text);
    EXPECT_EQ(*parse_duration(text), seconds);
  }
}

TEST(Duration, is_rounded_for_people) {
  for (const auto& [seconds, text] : {std::pair{0U, "0s"}, {5U, "5s"}, {119U, "119s"}, {125U, "2m"}, {86'400U, "24h"},
                                      {864'007U, "10d"}, {863'999U, "10d"}})
    EXPECT_EQ(rough_duration_text(seconds), text);
}

}  // namespace
}  // namespace varve
