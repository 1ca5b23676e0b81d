#include "base/leading_numbers.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace varve {

void read_leading_numbers(int file, std::span<std::uint64_t> numbers) {
  std::ranges::fill(numbers, 0);
  char text[96];
  const ssize_t got = file < 0 ? -1 : ::pread(file, text, sizeof text, 0);
  const char* at = text;
  const char* const end = text + std::max<ssize_t>(got, 0);
  for (std::uint64_t& number : numbers) {
    if (at == end) return;
    at = std::from_chars(at, end, number).ptr;
    if (at != end) ++at;
  }
}

}  // namespace varve
