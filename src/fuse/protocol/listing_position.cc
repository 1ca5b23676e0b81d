#include "fuse/protocol/listing_position.h"

#include <bit>
#include <limits>

namespace varve::fuse {

namespace {

// Three forms, told apart by their highest bit. Small: below 2^30, for 32-bit programs. Wide: `last` is rounded to
// mantissa * 2^exponent. Endless: the cookie alone. The end is one number for all that may be kept, and one for all others.
constexpr unsigned kSmallBits = 15;
constexpr std::uint64_t kEnd = (1ull << 31) - 1, kEndOfKept = kEnd - 1;
constexpr unsigned kCookieBits = 40, kMantissaBits = 17;
constexpr unsigned kExponentShift = kCookieBits + kMantissaBits;
constexpr std::uint64_t kEndless = 1ull << 62;

constexpr std::uint64_t mask(unsigned bits) { return (1ull << bits) - 1; }

}  // namespace

std::uint64_t ListingPosition::encode() const {
  if (at_end()) return may_be_kept ? kEndOfKept : kEnd;
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

std::optional<ListingPosition> ListingPosition::decode(std::uint64_t bits) {
  constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
  if (bits == kEnd || bits == kEndOfKept) return ListingPosition{kNoEnd, kNoEnd, bits == kEndOfKept};
  if (bits >= 2 * kEndless) return std::nullopt;
  if (bits & kEndless) return ListingPosition{bits & ~kEndless, kNoEnd};
  ListingPosition position{bits & mask(kSmallBits), bits >> kSmallBits};
  if (bits > mask(kCookieBits)) {
    const std::uint64_t mantissa = bits >> kCookieBits & mask(kMantissaBits), exponent = bits >> kExponentShift;
    position = {bits & mask(kCookieBits), mantissa << exponent};
  } else if (bits > mask(2 * kSmallBits)) {
    return std::nullopt;
  }
  if (position.at_end()) return std::nullopt;
  return position;
}

}  // namespace varve::fuse
