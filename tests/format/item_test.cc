#include "format/item.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "samples.h"

namespace varve::format {
namespace {

// Every strict prefix of an encoding, and the encoding with a byte more, must be refused. Where the end of the value is the end of a name
// or list it must at least not be read out of bounds.
template <class Decode>
void expect_prefixes_refused(const Bytes& bytes, Decode decode) {
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode(std::span(bytes).first(n)).ok()) << "prefix of " << n << " bytes";
}

TEST(Attributes, ComeBack) {
  Attributes all = test::sample_attributes();
  all.mode = 0040755;
  all.rdev = 0xFFFFFFFF;
  all.flags = 0x10;
  all.parent = Ino{1};
  all.next_cookie = 900;
  all.entries = 897;
  all.size = kMaxFileBytes;
  all.atime = {-5, 999'999'999};
  all.ctime = {1LL << 40, 0};
  all.btime = {0, 1};
  for (const Attributes& a : {test::sample_attributes(), all}) {
    Bytes bytes;
    encode_attributes(a, bytes);
    const auto back = decode_attributes(bytes);
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(*back, a);
    expect_prefixes_refused(bytes, decode_attributes);
    bytes.push_back(std::byte{0});
    EXPECT_TRUE(decode_attributes(bytes).fails_with(Errc::corrupt));
  }
}

TEST(Attributes, OfAFreshFileAreSmall) {
  Bytes bytes;
  encode_attributes(test::sample_attributes(), bytes);
  EXPECT_LE(bytes.size(), 27U);
}

TEST(Attributes, RefuseImpossibleValues) {
  auto refused = [](auto change) {
    Attributes a = test::sample_attributes();
    change(a);
    Bytes bytes;
    encode_attributes(a, bytes);
    return decode_attributes(bytes).fails_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused([](Attributes& a) { a.mode = 0; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.mode = 0300644; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.size = kMaxFileBytes + 1; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.blocks = kMaxFileBlocks + 1; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.ctime.nanoseconds = 1'000'000'000; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.next_cookie = 2; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.next_cookie = kCookieLimit + 1; }));
  EXPECT_TRUE(refused([](Attributes& a) { a.next_cookie = ~0ULL; }));
  EXPECT_FALSE(refused([](Attributes& a) { a.next_cookie = kCookieLimit; }));
}

TEST(Extent, ComesBack) {
  SeededRandom random(1);
  for (const std::size_t blocks : {std::size_t{1}, std::size_t{17}, std::size_t{kMaxExtentBlocks}}) {
    const Extent extent = test::sample_extent(random, blocks);
    Bytes bytes;
    encode_extent(extent, bytes);
    EXPECT_LE(bytes.size(), 1036U);
    EXPECT_EQ(*decode_extent(bytes), extent);
    bytes.push_back(std::byte{0});
    EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt));
  }
  Extent unwritten;
  unwritten.unwritten = true;
  unwritten.length = kMaxFileBlocks;
  Bytes bytes;
  encode_extent(unwritten, bytes);
  EXPECT_EQ(*decode_extent(bytes), unwritten);
  expect_prefixes_refused(bytes, decode_extent);
}

TEST(Extent, RefusesImpossibleValues) {
  SeededRandom random(1);
  Bytes good;
  encode_extent(test::sample_extent(random, 1), good);
  expect_prefixes_refused(good, decode_extent);
  Bytes bytes = good;
  bytes[0] = std::byte{2};
  EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt));
  bytes = good;
  std::fill(bytes.begin() + 1, bytes.begin() + 7, std::byte{0});
  EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt)) << "address 0";
  std::fill(bytes.begin() + 1, bytes.begin() + 7, std::byte{0xFF});
  EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt)) << "address beyond 48 bits";
  bytes = good;
  bytes.resize(12 + 4 * (kMaxExtentBlocks + 1));
  EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt)) << "too long";
  bytes = {std::byte{1}, std::byte{0}};
  EXPECT_TRUE(decode_extent(bytes).fails_with(Errc::corrupt)) << "unwritten of length 0";
}

TEST(Tail, ComesBack) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, kMaxTail}) {
    const Bytes content(size, std::byte{5});
    Bytes value;
    encode_tail(content, value);
    EXPECT_TRUE(is_tail(value));
    EXPECT_EQ(value.size(), 1 + size);
    const auto back = decode_tail(value);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(std::ranges::equal(*back, content));
    EXPECT_TRUE(decode_extent(value).fails_with(Errc::corrupt)) << "it is not taken for blocks";
    EXPECT_TRUE(extent_length(value).fails_with(Errc::corrupt));
    EXPECT_EQ(*owned_blocks(value), 0U);
  }
}

TEST(Tail, RefusesImpossibleValues) {
  EXPECT_TRUE(decode_tail(Bytes{}).fails_with(Errc::corrupt));
  EXPECT_TRUE(decode_tail(Bytes{std::byte{2}}).fails_with(Errc::corrupt)) << "no bytes";
  for (const unsigned flags : {0U, 1U, 3U, 4U, 6U})
    EXPECT_TRUE(decode_tail(Bytes{static_cast<std::byte>(flags), std::byte{9}}).fails_with(Errc::corrupt)) << flags;
  Bytes too_long(2 + kMaxTail, std::byte{2});
  EXPECT_TRUE(decode_tail(too_long).fails_with(Errc::corrupt));
  too_long.pop_back();
  EXPECT_TRUE(decode_tail(too_long).ok());
}

TEST(Dirent, ComesBackOrIsRefused) {
  const std::string longest(kMaxName, 'x');
  for (const std::string_view name : {std::string_view("a"), std::string_view("..."), std::string_view(longest)}) {
    Bytes bytes;
    encode_dirent({Ino{300}, 8, name}, bytes);
    const auto back = decode_dirent(bytes);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->ino, Ino{300});
    EXPECT_EQ(back->type, 8);
    EXPECT_EQ(back->name, name);
  }
  auto refused = [](Dirent entry) {
    Bytes bytes;
    encode_dirent(entry, bytes);
    return decode_dirent(bytes).fails_with(Errc::corrupt);
  };
  const std::string too_long(kMaxName + 1, 'x');
  EXPECT_TRUE(refused({Ino{1}, 8, ""}));
  EXPECT_TRUE(refused({Ino{1}, 8, "."}));
  EXPECT_TRUE(refused({Ino{1}, 8, ".."}));
  EXPECT_TRUE(refused({Ino{1}, 8, "a/b"}));
  EXPECT_TRUE(refused({Ino{1}, 8, std::string_view("a\0b", 3)}));
  EXPECT_TRUE(refused({Ino{1}, 8, too_long}));
  EXPECT_TRUE(refused({Ino{0}, 8, "a"}));
  EXPECT_TRUE(refused({Ino{1}, 0, "a"}));
  EXPECT_TRUE(refused({Ino{1}, 3, "a"}));
}

TEST(Cookies, ComeBackSorted) {
  Bytes bytes;
  encode_cookies(std::vector<std::uint64_t>{900, 3, 1ULL << 63}, bytes);
  EXPECT_EQ(*decode_cookies(bytes), (std::vector<std::uint64_t>{3, 900, 1ULL << 63}));
  EXPECT_TRUE(decode_cookies({}).fails_with(Errc::corrupt));
  bytes.push_back(std::byte{0});
  EXPECT_TRUE(decode_cookies(bytes).fails_with(Errc::corrupt)) << "a cookie twice";
  const Bytes overlong(11, std::byte{0xFF});
  EXPECT_TRUE(decode_cookies(overlong).fails_with(Errc::corrupt));
}

TEST(NameHash, IsSipHash24) {
  // Key 00…0f and messages 00, 00 01, …: test vectors of the paper's reference implementation.
  const std::array<std::uint64_t, 2> key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string message;
  EXPECT_EQ(name_hash(message, key), 0x726fdb47dd0e0e31U);
  for (char c = 0; c < 15; ++c) message.push_back(c);
  EXPECT_EQ(name_hash(message, key), 0xa129ca6149be45e5U);
}

TEST(Xattrs, ComeBackOrAreRefused) {
  const std::vector<Xattr> set{{"security.capability", Bytes(20, std::byte{1})},
                               {"user.big", Bytes(kMaxXattrValue, std::byte{2})},
                               {"user.empty", {}}};
  Bytes bytes;
  encode_xattrs(set, bytes);
  EXPECT_EQ(*decode_xattrs(bytes), set);
  EXPECT_EQ(*decode_xattrs({}), std::vector<Xattr>{});
  auto refused = [](const std::vector<Xattr>& bad) {
    Bytes out;
    encode_xattrs(bad, out);
    return decode_xattrs(out).fails_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused({{"b", {}}, {"a", {}}}));
  EXPECT_TRUE(refused({{"a", {}}, {"a", {}}}));
  EXPECT_TRUE(refused({{"", {}}}));
  EXPECT_TRUE(refused({{"a", Bytes(kMaxXattrValue + 1)}}));
  bytes.resize(bytes.size() - 2);
  EXPECT_TRUE(decode_xattrs(bytes).fails_with(Errc::corrupt));
}

}  // namespace
}  // namespace varve::format
