// What a file remembers of attempts to make its content smaller: after one that failed it is left alone, longer each time. A look that
// found no promise counts as one that failed, or the looks alone would cost a fast stream several percent.
#pragma once

#include <cstdint>

namespace varve::blocks {

// Two bytes for each file that is written. Not thread-safe: it belongs to what the lock of the inode guards.
class BackOff {
 public:
  static constexpr std::uint8_t kMostPatience = 5;  // 2^5 - 1 units are passed over, 4 MiB

  // To be asked once for each unit.
  bool may_try() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void failed() {
    if (patience_ < kMostPatience) ++patience_;
    left_ = static_cast<std::uint8_t>((1U << patience_) - 1);
  }
  void succeeded() { patience_ = 0; }

 private:
  std::uint8_t patience_ = 0;
  std::uint8_t left_ = 0;
};

}  // namespace varve::blocks
