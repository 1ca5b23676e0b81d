// Blocks of which a part was written, durably and not long ago. The next synced append to a log, a journal or a database changes the same
// block again, and finds here what the device would have to read.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/mutex.h"
#include "base/types.h"

namespace varve::log {

// A block is named by its address and its checksum. So an older block of the same address is never found, and nothing has to be taken
// back when blocks die. Thread-safe.
class PartsWritten {
 public:
  static constexpr std::size_t kBlocks = 64;  // as many files can be appended to in turn

  // The oldest one goes.
  void add(BlockAddr address, std::uint32_t crc, std::span<const std::byte> block);
  // False: it is not here. Else `out` has its bytes.
  bool find(BlockAddr address, std::uint32_t crc, std::span<std::byte> out) const;

 private:
  struct Name {
    BlockAddr address;
    std::uint32_t crc = 0;
  };

  mutable Mutex mutex_;
  std::array<Name, kBlocks> names_ GUARDED_BY(mutex_){};
  AlignedBuffer blocks_ GUARDED_BY(mutex_){kBlocks * kBlockSize};  // the kernel gives pages as they are used
  std::size_t next_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::log
