// Reads blocks that stand here and there with few requests. What is close together comes in one, along with what is dead
// in between, because a request costs as much as the transfer of many blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/types.h"
#include "io/batch.h"

namespace varve::io {

// Used by one thread.
class SparseRead {
 public:
  // Few requests if they are in ascending order.
  explicit SparseRead(std::vector<BlockAddr> blocks);

  // Reads all of them, by a batch that is empty before and after. Blocks in between that cannot be read do no harm, and
  // one that is wanted is an error of that one: the first of them is what is returned.
  // `stop`, if there is one, is asked before each request: when it says so, nothing more is read, and what is there is no use.
  Status run(Batch& batch, const std::function<bool()>& stop = {});
  bool stopped() const { return stopped_; }
  bool failed(std::size_t index) const { return errors_.contains(index); }
  const std::byte* block(std::size_t index) const { return memory_.data() + places_[index] * kBlockSize; }
  std::uint64_t requests() const { return requests_; }
  std::uint64_t bytes() const { return bytes_; }  // read by them

 private:
  static constexpr std::uint64_t kMostGap = 8;       // blocks; by then a request of its own is as cheap
  static constexpr std::uint64_t kMostBlocks = 64;   // by one request: others wait behind it
  struct Part {
    std::size_t begin, end;  // of blocks_
    std::size_t place;       // of its first block in memory_, in blocks
  };
  std::uint64_t length(const Part& part) const { return blocks_[part.end - 1] - blocks_[part.begin] + 1; }
  void add(Batch& batch, BlockAddr from, std::uint64_t count, std::size_t place);
  // What could not be read together with others.
  void read_one_by_one(Batch& batch, std::span<const std::size_t> blocks);

  const std::vector<BlockAddr> blocks_;
  std::vector<std::size_t> places_;  // in memory_, in blocks
  std::vector<Part> parts_;
  AlignedBuffer memory_;
  std::map<std::size_t, Error> errors_;  // by index
  std::uint64_t requests_ = 0, bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace varve::io
