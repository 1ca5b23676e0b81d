// Which coding new units get, and how hard it tries: as users name it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/unit.h"

namespace varve::blocks {

inline constexpr int kMostLevel = 15;  // of zstd: from there on an encoder takes tens of MiB

struct Compression {
  format::Coding coding = format::Coding::zstd;
  int level = 3;  // of zstd: 1…kMostLevel; of lz4: 1

  bool operator==(const Compression&) const = default;
};

// "zstd", "zstd:1" to "zstd:15", "lz4", or "off", which is none. Errc::invalid names what can be given.
Result<std::optional<Compression>> parse_compression(std::string_view text);

// The shortest text that parse_compression() reads as the same.
std::string text_of(const std::optional<Compression>& compression);

}  // namespace varve::blocks
