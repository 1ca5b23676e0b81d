// SipHash-2-4 after Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).
#include <bit>

#include "format/codec.h"
#include "format/item.h"

namespace varve::format {

namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  explicit SipState(const std::array<std::uint64_t, 2>& key)
      : v0(key[0] ^ 0x736f6d6570736575ULL), v1(key[1] ^ 0x646f72616e646f6dULL),
        v2(key[0] ^ 0x6c7967656e657261ULL), v3(key[1] ^ 0x7465646279746573ULL) {}

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t name_hash(std::string_view name, const std::array<std::uint64_t, 2>& key) {
  SipState state(key);
  Reader in(std::as_bytes(std::span(name.data(), name.size())));
  while (in.left() >= 8) state.absorb(in.u64());
  std::uint64_t last = static_cast<std::uint64_t>(name.size()) << 56;
  for (unsigned shift = 0; in.left() > 0; shift += 8) last |= static_cast<std::uint64_t>(in.u8()) << shift;
  state.absorb(last);
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace varve::format
