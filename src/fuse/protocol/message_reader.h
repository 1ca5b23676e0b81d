// Bounds-checked reading of the body of one FUSE message, which may stand in two pieces.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace varve::fuse {

// Views point into the message. Errors: Errc::invalid for a message that is too short or not terminated,
// Errc::name_too_long for a name that no directory can hold (the kernel passes them on).
class MessageReader {
 public:
  MessageReader() = default;
  // Nothing that is taken in one go stands in both pieces.
  explicit MessageReader(std::span<const std::byte> body, std::span<const std::byte> more = {}) : rest_(body), more_(more) { go_on(); }

  template <class T>
  Result<T> take() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (rest_.size() < sizeof(T)) return Errc::invalid;
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    advance(sizeof(T));
    return value;
  }

  Result<std::string_view> take_string();  // up to its NUL
  Result<std::string_view> take_name();    // a string that is a possible name of a directory entry
  Result<std::span<const std::byte>> take_bytes(std::size_t count);
  std::span<const std::byte> rest() const { return rest_; }  // of the piece

 private:
  void advance(std::size_t bytes) {
    rest_ = rest_.subspan(bytes);
    go_on();
  }
  void go_on() {
    if (rest_.empty()) rest_ = std::exchange(more_, {});
  }

  std::span<const std::byte> rest_, more_;
};

}  // namespace varve::fuse
