// The blocks that are stored for a unit become its content again.
#pragma once

#include <memory>
#include <span>

#include "base/buffer.h"
#include "base/result.h"

namespace varve::blocks {

// Has the memory that the libraries work in, some 160 KiB whatever the bytes say. One thread at a time.
class UnitDecoder {
 public:
  UnitDecoder();
  ~UnitDecoder();
  UnitDecoder(const UnitDecoder&) = delete;
  UnitDecoder& operator=(const UnitDecoder&) = delete;

  // `stored`: all blocks of the unit, in their order. The content is 2…format::kUnitBlocks whole blocks. Any bytes may come: those that
  // are no unit, or not exactly one, are Errc::corrupt. Errc::no_memory if the library got none.
  Result<AlignedBuffer> decode(std::span<const std::byte> stored);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace varve::blocks
