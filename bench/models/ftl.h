// What stands between the addresses of a flash device and its erase blocks.
#pragma once

#include <cstdint>

namespace varve::bench {

inline constexpr std::uint64_t kFlashPage = 4096;  // bytes: the unit of addresses here, whatever the chip programs at once

struct FlashWork {
  std::uint64_t programmed = 0;  // pages, copies included
  std::uint64_t copied = 0;      // pages of these that were read first
  std::uint64_t cached = 0;      // pages of these in single-level cells, for the time being
  std::uint64_t erases = 0;      // blocks

  FlashWork& operator+=(const FlashWork& other) {
    programmed += other.programmed;
    copied += other.copied;
    cached += other.cached;
    erases += other.erases;
    return *this;
  }
};

class Ftl {
 public:
  virtual ~Ftl() = default;
  virtual FlashWork write(std::uint64_t first, std::uint64_t pages) = 0;
  virtual FlashWork discard(std::uint64_t first, std::uint64_t pages) = 0;
  // What was written so far has to outlive a loss of power.
  virtual FlashWork flush() { return {}; }
  // A piece of work that it has put off; nothing programmed and nothing erased: there is none.
  virtual FlashWork tidy() { return {}; }
  virtual std::uint64_t most_erases_of_a_block() const { return 0; }  // 0: blocks are not told apart
};

}  // namespace varve::bench
