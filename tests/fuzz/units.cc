#include "fuzz/units.h"

#include <algorithm>

#include "blocks/content.h"
#include "blocks/unit_decoder.h"
#include "blocks/unit_encoder.h"
#include "format/unit.h"

namespace varve::fuzz {

namespace {

using blocks::Compression;

const Compression kCompressions[] = {{format::Coding::zstd, 1}, {format::Coding::zstd, 9}, {format::Coding::lz4, 1}};

void check_decoder(std::span<const std::byte> stored) {
  static blocks::UnitDecoder decoder;
  const auto content = decoder.decode(stored);
  require(content.ok() || content.error().is(Errc::corrupt), "an error that is not damage");
  if (!content.ok()) return;
  const auto blocks = content.value().size() / kBlockSize;
  require(blocks >= 2 && blocks <= format::kUnitBlocks && content.value().size() % kBlockSize == 0, "a unit of an impossible length");
}

// A header before the input that fits to it, so that the libraries get to see it.
void check_coded(Input coded, format::Coding coding, std::uint32_t blocks, std::uint32_t crc) {
  const format::UnitHeader header{coding, blocks, static_cast<std::uint32_t>(coded.size()), crc};
  std::vector<std::byte> stored(header.stored_blocks() * kBlockSize);
  std::ranges::copy(coded, stored.begin() + format::kUnitHeaderBytes);
  format::encode_unit_header(header, stored);
  check_decoder(stored);
}

// What is content comes back.
void check_round_trip(Input content) {
  static blocks::UnitEncoder encoder;
  static blocks::UnitDecoder decoder;
  std::vector<std::byte> whole(content.begin(), content.end());
  whole.resize(std::min<std::size_t>(round_up(2 * whole.size() + 1, kBlockSize), format::kUnitBlocks * kBlockSize));
  std::vector<std::byte> stored(whole.size());
  for (const Compression& how : kCompressions) {
    const std::uint32_t taken = encoder.encode(whole, how, stored);
    if (taken == 0) continue;
    const auto back = decoder.decode(std::span(stored).first(taken * kBlockSize));
    require(back.ok() && std::ranges::equal(back.value().span(), whole), "a unit that comes back differently");
  }
}

}  // namespace

// Two bytes say what follows: one way to look at it, and for how many blocks it stands.
void units(Input input) {
  Source source(input);
  const auto way = source.number(1);
  const auto blocks = static_cast<std::uint32_t>(source.number(1) % (format::kUnitBlocks + 2));
  const Input rest = source.bytes(format::kUnitBlocks * kBlockSize);
  if (way % 4 == 0) {
    std::vector<std::byte> stored(rest.begin(), rest.end());
    check_decoder(stored);
    stored.resize(round_up(stored.size(), kBlockSize));
    check_decoder(stored);
  } else if (way % 4 == 3) {
    check_round_trip(rest);
  } else {
    check_coded(rest, way % 4 == 1 ? format::Coding::zstd : format::Coding::lz4, blocks, static_cast<std::uint32_t>(way) >> 2);
  }
}

Seeds unit_seeds() {
  Seeds seeds;
  blocks::UnitEncoder encoder;
  for (const Compression& how : kCompressions) {
    for (const std::uint32_t blocks : {2U, 8U}) {
      const auto content = test::text(blocks, blocks);
      std::vector<std::byte> stored(content.size());
      stored.resize(encoder.encode(content, how, stored) * kBlockSize);
      const auto header = format::decode_unit_header(stored).value();
      const auto coded = format::coded_bytes_of(header, stored);
      std::vector<std::byte> whole{std::byte{0}, static_cast<std::byte>(blocks)};
      whole.insert(whole.end(), stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(format::kUnitHeaderBytes + coded.size()));
      std::vector<std::byte> bare{how.coding == format::Coding::zstd ? std::byte{1} : std::byte{2}, static_cast<std::byte>(blocks)};
      bare.insert(bare.end(), coded.begin(), coded.end());
      seeds.push_back(std::move(whole));
      seeds.push_back(std::move(bare));
    }
  }
  seeds.push_back({std::byte{3}, std::byte{0}, std::byte{7}, std::byte{7}});
  return seeds;
}

}  // namespace varve::fuzz
