#include "fuse/listing_position.h"

#include <bit>
#include <limits>

namespace varve::fuse {

namespace {

// Three forms, told apart by their highest bit. Small: below 2^31, for 32-bit programs. Wide: `last` is rounded to
// mantissa * 2^exponent. Endless: the cookie alone.
constexpr unsigned kSmallBits = 15;
constexpr unsigned kCookieBits = 40, kMantissaBits = 17;
constexpr unsigned kExponentShift = kCookieBits + kMantissaBits;
constexpr std::uint64_t kEndless = 1ull << 62;

constexpr std::uint64_t mask(unsigned bits) { return (1ull << bits) - 1; }

}  // namespace

std::uint64_t ListingPosition::encode() const {
  if (last <= mask(kSmallBits) && cookie <= mask(kSmallBits)) return last << kSmallBits | cookie;
  if (last > 1ull << kCookieBits || cookie > mask(kCookieBits)) return kEndless | cookie;
  const unsigned width = static_cast<unsigned>(std::bit_width(last));
  unsigned exponent = width > kMantissaBits ? width - kMantissaBits : 0;
  std::uint64_t mantissa = (last + mask(exponent)) >> exponent;
  if (mantissa > mask(kMantissaBits)) {
    mantissa >>= 1;
    ++exponent;
  }
  return std::uint64_t{exponent} << kExponentShift | mantissa << kCookieBits | cookie;
}

ListingPosition ListingPosition::decode(std::uint64_t bits) {
  if (bits & kEndless) return {bits & ~kEndless, std::numeric_limits<std::uint64_t>::max()};
  if (bits <= mask(kCookieBits)) return {bits & mask(kSmallBits), bits >> kSmallBits};
  return {bits & mask(kCookieBits), (bits >> kCookieBits & mask(kMantissaBits)) << (bits >> kExponentShift)};
}

}  // namespace varve::fuse
