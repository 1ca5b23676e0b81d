// Reads file blocks and compares them with the checksums that their extents hold.
#pragma once

#include <vector>

#include "check/context.h"
#include "format/item.h"

namespace varve::check {

struct PlacedExtent {
  Ino ino;
  std::uint64_t first = 0;  // file block
  format::Extent extent;
};

class DataVerifier {
 public:
  explicit DataVerifier(Context& context) : context_(context) {}

  void add(PlacedExtent extent);  // collects; reads when enough has come together
  void finish();

 private:
  void verify_batch();
  void verify(const PlacedExtent& placed, std::span<const std::byte> data);
  void verify_singly(const PlacedExtent& placed, std::span<std::byte> buffer);
  void compare(const PlacedExtent& placed, std::uint64_t index, std::span<const std::byte> block);

  Context& context_;
  std::vector<PlacedExtent> waiting_;
  std::uint64_t waiting_blocks_ = 0;
};

}  // namespace varve::check
