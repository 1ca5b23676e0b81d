// The numbers that a file of the kernel begins with, as those of /proc that are read again and again.
#pragma once

#include <cstdint>
#include <span>

namespace varve {

// From the beginning of `file`, with one space between two. What is not there, or cannot be read, is 0.
void read_leading_numbers(int file, std::span<std::uint64_t> numbers);

}  // namespace varve
