#include "blocks/compression.h"

#include <charconv>

#include <fmt/format.h>

namespace varve::blocks {

namespace {

constexpr std::string_view kLevelled = "zstd:";

std::optional<int> level_in(std::string_view text) {
  int level = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (failed != std::errc{} || end != text.data() + text.size() || level < 1 || level > kMostLevel) return std::nullopt;
  return level;
}

}  // namespace

Result<std::optional<Compression>> parse_compression(std::string_view text) {
  if (text == "off") return std::optional<Compression>();
  if (text == "lz4") return std::optional(Compression{format::Coding::lz4, 1});
  if (text == "zstd") return std::optional(Compression{});
  if (text.starts_with(kLevelled)) {
    if (const auto level = level_in(text.substr(kLevelled.size()))) return std::optional(Compression{format::Coding::zstd, *level});
  }
  return Error(Errc::invalid, fmt::format("compression \"{}\" is not known: give zstd, zstd:1 to zstd:{}, lz4 or off", text, kMostLevel));
}

std::string text_of(const std::optional<Compression>& compression) {
  if (!compression) return "off";
  if (compression->coding == format::Coding::lz4) return "lz4";
  return compression->level == Compression{}.level ? "zstd" : fmt::format("zstd:{}", compression->level);
}

}  // namespace varve::blocks
