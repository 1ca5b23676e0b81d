#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace varve {

std::size_t printable_length(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t length = byte < 0x80 ? 1 : (byte & 0xE0) == 0xC0 ? 2 : (byte & 0xF0) == 0xE0 ? 3 : (byte & 0xF8) == 0xF0 ? 4 : 0;
  if (length == 0 || at + length > text.size() || byte < 0x20 || byte == 0x7F) return 0;
  if (byte >= 0xC0 && byte < 0xC2) return 0;  // longer than it must be
  if (byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0) return 0;  // a control character
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 0;
  return length;
}

bool is_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = printable_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

namespace {
// Characters that turn the direction of the text behind them: U+202A to U+202E, U+2066 to U+2069.
bool turns_direction(std::string_view character) {
  return (character >= "\xE2\x80\xAA" && character <= "\xE2\x80\xAE") || (character >= "\xE2\x81\xA6" && character <= "\xE2\x81\xA9");
}
}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = printable_length(text, at);
    if (length == 3 && turns_direction(text.substr(at, length))) length = 0;
    if (length > 0) out.append(text, at, length);
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace varve
