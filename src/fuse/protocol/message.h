// Bounds-checked reading of the body of one FUSE message.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace varve::fuse {

// Views point into the message. Errors: Errc::invalid for a message that is too short or not terminated,
// Errc::name_too_long for a name that no directory can hold (the kernel passes them on).
class MessageReader {
 public:
  MessageReader() = default;
  explicit MessageReader(std::span<const std::byte> body) : rest_(body) {}

  template <class T>
  Result<T> take() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (rest_.size() < sizeof(T)) return Errc::invalid;
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  Result<std::string_view> take_string();  // up to its NUL
  Result<std::string_view> take_name();    // a string that is a possible name of a directory entry
  Result<std::span<const std::byte>> take_bytes(std::size_t count);
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace varve::fuse
