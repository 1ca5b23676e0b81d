#include "base/logging.h"

#include <gtest/gtest.h>

#include "base/types.h"
#include "support/listener.h"

namespace varve {
namespace {

// Counts how often it is formatted.
struct Counted {
  int& times;
};

}  // namespace
}  // namespace varve

template <>
struct fmt::formatter<varve::Counted> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::format_context::iterator format(const varve::Counted& counted, fmt::format_context& context) const {
    ++counted.times;
    return context.out();
  }
};

namespace varve {
namespace {

TEST(Logging, MessagesReachTheLoggerWithTheirArguments) {
  test::Listener listener;
  const std::string name = "disk";
  log_error("{}: inode {} of {}", name, Ino{7}, 3);
  log_warn("no argument");
  log_critical("{:.1f} %", 12.34);
  EXPECT_EQ(listener.count("disk: inode 7 of 3"), 1u);
  EXPECT_EQ(listener.count("no argument"), 1u);
  EXPECT_EQ(listener.count("12.3 %"), 1u);
}

TEST(Logging, WhatNobodyHearsIsNotFormatted) {
  test::Listener listener;  // from warnings on
  int times = 0;
  log_info("{}", Counted{times});
  log_debug("{}", Counted{times});
  EXPECT_EQ(times, 0);
  log_warn("{}", Counted{times});
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace varve
