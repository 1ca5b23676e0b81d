#include "blocks/compression.h"

#include <gtest/gtest.h>

namespace varve::blocks {
namespace {

TEST(Compression, ReadsWhatUsersWrite) {
  const auto read = [](std::string_view text) { return parse_compression(text).value(); };
  EXPECT_EQ(read("off"), std::nullopt);
  EXPECT_EQ(read("zstd"), (Compression{format::Coding::zstd, 3}));
  EXPECT_EQ(read("zstd:1"), (Compression{format::Coding::zstd, 1}));
  EXPECT_EQ(read("zstd:15"), (Compression{format::Coding::zstd, 15}));
  EXPECT_EQ(read("lz4"), (Compression{format::Coding::lz4, 1}));
}

TEST(Compression, RefusesTheRestAndSaysWhatThereIs) {
  for (const char* text : {"", "gzip", "zstd:", "zstd:0", "zstd:16", "zstd:-1", "zstd:3x", "zstd: 3", "lz4:1", "LZ4", "off:1"}) {
    const auto result = parse_compression(text);
    ASSERT_TRUE(result.fails_with(Errc::invalid)) << text;
    EXPECT_NE(result.error().message().find("zstd:1 to zstd:15, lz4 or off"), std::string::npos);
  }
}

TEST(Compression, TextComesBack) {
  for (const char* text : {"off", "zstd", "zstd:1", "zstd:15", "lz4"}) EXPECT_EQ(text_of(parse_compression(text).value()), text);
  EXPECT_EQ(text_of(parse_compression("zstd:3").value()), "zstd");
}

}  // namespace
}  // namespace varve::blocks
