// Many reads at once: metadata is scattered, and a device answers 256 requests in little more time than one.
#pragma once

#include <span>

#include "io/block_device.h"

namespace varve::check {

struct ReadPiece {
  BlockAddr address;
  std::span<std::byte> out;  // whole blocks, aligned
  int error = 0;             // out: 0 or errno
};

class BatchReader {
 public:
  explicit BatchReader(io::BlockDevice& device) : device_(device) {}

  // Returns when all are done. Single blocks that failed have then been read again, alone (io/patient_read.h).
  void read(std::span<ReadPiece> pieces);

 private:
  void read_again(ReadPiece& piece);

  io::BlockDevice& device_;
};

}  // namespace varve::check
