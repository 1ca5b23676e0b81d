// Memory in huge pages, for transfers between the device and the kernel.
//
// A direct read into scattered pages pins, maps and hands to the device each page by itself; in huge pages a megabyte is
// one or two pieces, which is measurably faster (docs/performance.md).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace varve::fuse {

// Takes `bytes` at once, all touched: once the process may not wait for I/O (PR_SET_IO_FLUSHER) the kernel can no longer
// compact memory for it. Where it has no huge pages, ordinary ones do; where it has no memory, bytes() is empty.
class LargeMemory {
 public:
  explicit LargeMemory(std::size_t bytes);
  ~LargeMemory();
  LargeMemory(const LargeMemory&) = delete;
  LargeMemory& operator=(const LargeMemory&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace varve::fuse
