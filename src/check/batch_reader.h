// Many reads at once: metadata is scattered, and a device answers 256 requests in little more time than one.
#pragma once

#include <memory>
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
  explicit BatchReader(io::BlockDevice& device) : queue_(device.make_queue()) {}

  void read(std::span<ReadPiece> pieces);  // returns when all are done

 private:
  std::unique_ptr<io::IoQueue> queue_;
};

}  // namespace varve::check
