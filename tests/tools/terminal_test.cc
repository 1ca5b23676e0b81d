// Text that fits a terminal, and how far something has come.
#include "shared/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "shared/progress_meter.h"
#include "support/manual_clock.h"

namespace varve::test {
namespace {

using Lines = std::vector<std::string>;

TEST(Terminal, text_is_cut_between_characters) {
  EXPECT_EQ(fitted("Größe", 4), "Größ");
  EXPECT_EQ(fitted("Größe", 80), "Größe");
  EXPECT_EQ(fitted("", 3), "");
}

TEST(Terminal, long_lines_go_on_in_the_next_one) {
  EXPECT_EQ(wrapped("one two three four\n\nfive\n", 12), (Lines{"one two", "  three four", "", "five"}));
  EXPECT_EQ(wrapped("0123456789abcdef", 10), (Lines{"0123456789", "  abcdef"}));
  EXPECT_EQ(wrapped("Space      [####....] 1 %", 16), (Lines{"Space", "  [####....] 1 %"}));
  for (const std::string& line : wrapped(std::string(500, 'x') + " " + std::string(300, ' ') + "y", 40)) EXPECT_LE(line.size(), 40U);
}

TEST(Terminal, pages_hold_all_lines_and_no_more_than_fit) {
  Lines lines;
  for (int i = 0; i < 60; ++i) lines.push_back(i % 9 == 5 ? "" : std::to_string(i));
  for (const std::size_t rows : {1, 2, 5, 22, 60, 100}) {
    Lines shown;
    for (const Lines& page : pages_of(lines, rows)) {
      EXPECT_LE(page.size(), rows);
      EXPECT_FALSE(page.empty());
      shown.insert(shown.end(), page.begin(), page.end());
    }
    Lines all = lines;
    std::erase(all, "");
    std::erase(shown, "");
    EXPECT_EQ(shown, all) << rows;
  }
  EXPECT_EQ(pages_of({"a", "b", "", "c", "d"}, 4), (std::vector<Lines>{{"a", "b", ""}, {"c", "d"}}));
  EXPECT_EQ(pages_of({}, 4).size(), 1U);
}

class Meter : public testing::Test {
 protected:
  void show(ProgressMeter& meter, double share) { meter.show([] { return "half a sentence that is long"; }, share); }
  std::string taken() { return std::exchange(out_, std::ostringstream()).str(); }
  void pass(std::uint64_t seconds) { clock_.advance(static_cast<std::int64_t>(seconds) * 1'000'000'000); }

  ManualClock clock_;
  std::ostringstream out_;
  std::size_t columns_ = 80;
};

TEST_F(Meter, tells_the_time_that_is_left_and_fits_the_width) {
  {
    ProgressMeter meter(out_, ProgressMeter::Kind::overwritten, [this] { return columns_; }, clock_);
    show(meter, 0.1);
    EXPECT_EQ(taken(), "");  // what ends soon shows nothing
    pass(60);
    show(meter, 0.25);
    EXPECT_EQ(taken(), "\r\x1b[Khalf a sentence that is long, about 3 min left");
    show(meter, 0.25);
    EXPECT_EQ(taken(), "");  // not all the time
    pass(1);
    columns_ = 30;
    show(meter, ProgressMeter::kUnknown);
    EXPECT_EQ(taken(), "\r\x1b[Khalf a sentence that is long");
    pass(59);
    show(meter, 0.75);
    EXPECT_EQ(taken(), "\r\x1b[Khalf a sente, about 40 s left");
    columns_ = 5;
    pass(1);
    show(meter, 0.75);
    EXPECT_EQ(taken(), "\r\x1b[Khalf");
  }
  EXPECT_EQ(taken(), "\r\x1b[K");
}

TEST_F(Meter, writes_no_escapes_to_a_terminal_that_only_prints) {
  {
    ProgressMeter meter(out_, ProgressMeter::Kind::lines, [this] { return columns_; }, clock_);
    pass(20);
    show(meter, 0.5);
    EXPECT_EQ(taken(), "half a sentence that is long, about 20 s left\n");
    pass(1);
    show(meter, 0.5);
    EXPECT_EQ(taken(), "");
  }
  EXPECT_EQ(taken(), "");
}

TEST_F(Meter, says_nothing_to_what_is_no_terminal) {
  ProgressMeter meter(out_, true);
  pass(100);
  show(meter, 0.5);
  EXPECT_EQ(taken(), "");
}

TEST(RoughDuration, is_as_exact_as_anybody_needs) {
  EXPECT_EQ(rough_duration(0), "1 s");
  EXPECT_EQ(rough_duration(59), "59 s");
  EXPECT_EQ(rough_duration(150), "3 min");
  EXPECT_EQ(rough_duration(7500), "2 h 5 min");
}

}  // namespace
}  // namespace varve::test
