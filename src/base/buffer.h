// Page-aligned memory for direct I/O.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/types.h"

namespace varve {

// Owns bytes aligned to the block size; contents start undefined unless zeroed() made it.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size)
      : data_(static_cast<std::byte*>(::operator new(round_up(size ? size : 1, kBlockSize), kAlignment))), size_(size) {}
  static AlignedBuffer zeroed(std::size_t size) {
    AlignedBuffer buffer(size);
    std::memset(buffer.data(), 0, size);
    return buffer;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  static constexpr std::align_val_t kAlignment{kBlockSize};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace varve
