// What a file remembers of attempts to make its content smaller: after one that failed it is left alone, longer each time.
#pragma once

#include <cstdint>

namespace varve::blocks {

// Two bytes for each file that is written. Not thread-safe: it belongs to what the lock of the inode guards.
class BackOff {
 public:
  static constexpr std::uint8_t kMostPatience = 7;  // 2^7 - 1 units are passed over, 16 MiB

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
