#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(Utf8, is_what_people_can_read) {
  for (const char* const text : {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xC2\xA0"})
    EXPECT_TRUE(is_printable(text)) << text;
}

TEST(Utf8, is_neither_another_coding_nor_cut_off_nor_a_control_character) {
  for (const char* const text : {"\xFF", "b\xFF", "gr\xFC", "\xC3", "\xE2\x82", "\xC0\xAF", "\x80", "\n", "\x7F", "\xC2\x85"})
    EXPECT_FALSE(is_printable(text)) << text;
  EXPECT_FALSE(is_printable(std::string(1, '\0')));
}

TEST(Utf8, is_shown_without_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F \"x\""), "gr\xC3\xBC\xC3\x9F \"x\"");
  EXPECT_EQ(printable("a\nb\x1B[31m\xFF"), "a\\x0ab\\x1b[31m\\xff");
}

TEST(Utf8, is_shown_without_what_turns_the_rest_of_the_line_round) {
  EXPECT_EQ(printable("a\xE2\x80\xAEtxt.exe"), "a\\xe2\\x80\\xaetxt.exe");
  EXPECT_EQ(printable("\xE2\x81\xA6"), "\\xe2\\x81\\xa6");
  EXPECT_EQ(printable("\xE2\x80\x99 \xE2\x82\xAC"), "\xE2\x80\x99 \xE2\x82\xAC");
}

TEST(Utf8, goes_character_by_character) {
  const std::string text = "a\xE2\x82\xAC\xFF";
  EXPECT_EQ(printable_length(text, 0), 1U);
  EXPECT_EQ(printable_length(text, 1), 3U);
  EXPECT_EQ(printable_length(text, 4), 0U);
}

}  // namespace
}  // namespace varve
