#include "send/token.h"

#include <boost/algorithm/hex.hpp>
#include <iterator>

#include "base/crc32c.h"
#include "compare/bytes.h"
#include "send/record_codec.h"

namespace varve::send {

namespace {

constexpr std::uint64_t kTokenVersion = 1;

bool are_same(const State& one, const State& other) { return one.uuid == other.uuid && one.serial == other.serial; }

}  // namespace

std::string token_of(const Begin& where) {
  Bytes bytes;
  compare::put(bytes, kTokenVersion);
  put_state(bytes, where.snapshot);
  compare::put(bytes, std::uint64_t{where.base.has_value()});
  if (where.base) put_state(bytes, *where.base);
  compare::put(bytes, where.position.records);
  compare::put(bytes, std::uint64_t{where.position.digest});
  format::append_fixed(bytes, crc32c(bytes), 4);
  std::string text;
  const auto* const chars = reinterpret_cast<const unsigned char*>(bytes.data());
  boost::algorithm::hex_lower(chars, chars + bytes.size(), std::back_inserter(text));
  return text;
}

Result<Begin> begin_from(std::string_view token) {
  const Error no_token(Errc::invalid, "this is no token of varve receive --resume-token, or not all of it");
  constexpr std::size_t kLongest = 8192;
  std::string raw;
  try {
    if (token.size() < 16 || token.size() > kLongest) return no_token;
    boost::algorithm::unhex(token, std::back_inserter(raw));
  } catch (const boost::algorithm::hex_decode_error&) {
    return no_token;
  }
  const auto bytes = std::as_bytes(std::span(raw));
  const auto body = bytes.first(bytes.size() - 4);
  if (format::Reader(bytes.last(4)).u32() != crc32c(body)) return no_token;
  format::Reader in(body);
  if (in.varint() != kTokenVersion) return Error(Errc::unknown_feature, "this token is one of another version of Varve");
  Begin found{state(in), {}, {}};
  if (TRY(flag(in))) found.base = state(in);
  found.position.records = in.varint();
  found.position.digest = static_cast<std::uint32_t>(in.varint());
  if (!in.ok() || in.left() || found.position.records >= kMostRecords) return no_token;
  return found;
}

bool lead_the_same_way(const Begin& one, const Begin& other) {
  if (one.base.has_value() != other.base.has_value() || !are_same(one.snapshot, other.snapshot)) return false;
  return !one.base || are_same(*one.base, *other.base);
}

}  // namespace varve::send
