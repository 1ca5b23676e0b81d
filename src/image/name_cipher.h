// Other names of the same length, for images that strangers get. Without the key nobody can find out what they were.
//
// Each letter and digit becomes another one, and the last bytes of other characters become others. What else there is stays: dots,
// hyphens, spaces. So no name becomes an impossible one, and two different names stay different. The same name becomes the same one
// everywhere, so that symlinks lead where they led.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace varve::image {

// Any thread.
class NameCipher {
 public:
  explicit NameCipher(const std::array<std::uint64_t, 2>& key) : key_(key) {}

  void change(std::span<std::byte> name) const;
  // Each part between slashes.
  void change_path(std::span<std::byte> path) const;
  // Nothing but letters and digits of ASCII.
  std::string ascii_only(std::string_view name) const;

 private:
  enum class Others : std::uint8_t { change, stay };
  void change(std::span<std::byte> name, Others others) const;
  void pass(std::span<std::byte> name, std::uint64_t number, Others others) const;

  std::array<std::uint64_t, 2> key_;
};

}  // namespace varve::image
