// Units of files through encoder, decoder and the look before them, with CPU times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "blocks/compression.h"

namespace varve::bench {

using Unit = std::vector<std::byte>;  // whole blocks, zeros behind the end of the file

// Units of all regular files below, in the order of their names, up to so many MiB.
std::vector<Unit> units_below(const std::vector<std::filesystem::path>& places, std::uint64_t mib);
std::vector<Unit> units_of_noise(std::uint64_t mib);

struct CodingResult {
  std::uint64_t blocks = 0, stored = 0, units = 0, kept = 0;
  double encode_seconds = 0, decode_seconds = 0;
  std::uint64_t decoded_bytes = 0;
  std::uint64_t missed_blocks = 0, vain_units = 0;  // against what the look says
};
CodingResult measure_coding(const std::vector<Unit>& units, const blocks::Compression& how);

struct PromiseResult {
  double look_seconds = 0, base_seconds = 0;  // base: a copy, and a checksum for each block
  double stream_seconds = 0;  // looks and attempts that fail, with the back-off, if all units are one file
  std::uint64_t promising = 0;
};
PromiseResult measure_promise(const std::vector<Unit>& units);

}  // namespace varve::bench
