// Text that people are shown: UTF-8 without control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace varve {

// The length of the character that begins there, in bytes. 0: no UTF-8 (RFC 3629, but for surrogates, which are let through), or a
// control character.
std::size_t printable_length(std::string_view text, std::size_t at);

bool is_printable(std::string_view text);

// For a terminal: control characters and what is no UTF-8 as \xNN.
std::string printable(std::string_view text);

}  // namespace varve
