// A cheap look at content: is an attempt to make it smaller worth its time?
#pragma once

#include <cstddef>
#include <span>

namespace varve::blocks {

// How many bits a byte of a sample carries, by how often each value occurs there: 0…8. Random bytes have some 7.9 in a sample of this size.
double sampled_entropy(std::span<const std::byte> content);

// False for photos, films, archives and what is encrypted. It reads 2 KiB, here and there, and takes some microseconds. It may be wrong
// both ways: content that repeats itself over long distances looks like noise. Any thread.
bool is_promising(std::span<const std::byte> content);

}  // namespace varve::blocks
