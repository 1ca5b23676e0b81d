// Content becomes the blocks that are stored for it, if that saves enough.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "blocks/compression.h"

namespace varve::blocks {

// Has the memory that the libraries work in: some 100 KiB to 20 MiB, by level. One thread at a time.
class UnitEncoder {
 public:
  UnitEncoder();
  ~UnitEncoder();
  UnitEncoder(const UnitEncoder&) = delete;
  UnitEncoder& operator=(const UnitEncoder&) = delete;

  // `content`: the file blocks of one unit, format::kUnitBlocks at most. `stored`: room for format::most_stored_blocks() of them.
  // Returns how many blocks of `stored` the unit takes. 0: it would not save one block in eight, and what `stored` has then means nothing.
  std::uint32_t encode(std::span<const std::byte> content, const Compression& how, std::span<std::byte> stored);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace varve::blocks
