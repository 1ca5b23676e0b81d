#include "image/name_cipher.h"

#include <algorithm>

#include "format/item.h"

namespace varve::image {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool is_continuation(std::byte byte) { return (byte & std::byte{0xC0}) == std::byte{0x80}; }

// In UTF-8 not every value may follow the first byte of three or more, so the byte behind such a one stays.
bool is_free_continuation(std::span<const std::byte> name, std::size_t at) {
  return is_continuation(name[at]) && at > 0 && name[at - 1] >= std::byte{0x80} && name[at - 1] < std::byte{0xE0} &&
         name[at - 1] != std::byte{0xC2};
}

std::byte moved(std::byte byte, std::uint64_t by, bool others) {
  const auto at = kAlphabet.find(static_cast<char>(byte));
  if (at != std::string_view::npos) return static_cast<std::byte>(kAlphabet[(at + by) % kAlphabet.size()]);
  if (others) return static_cast<std::byte>(0x80 + (std::to_integer<std::uint64_t>(byte) - 0x80 + by) % 0x40);
  return byte;
}

}  // namespace

// A byte's new value depends on all that have been changed before it: each step can be taken back with the key, so no two names become
// one.
void NameCipher::pass(std::span<std::byte> name, std::uint64_t number, Others others) const {
  const std::array<std::uint64_t, 2> key{key_[0] ^ number, key_[1] ^ name.size()};
  const bool is_forward = number % 2 == 1;
  std::string changed;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::size_t at = is_forward ? i : name.size() - 1 - i;
    const bool other = others == Others::change && is_free_continuation(name, at);
    name[at] = moved(name[at], format::name_hash(changed, key), other);
    changed.push_back(static_cast<char>(name[at]));
  }
}

// There and back, so that names that begin alike do not stay so.
void NameCipher::change(std::span<std::byte> name, Others others) const {
  for (const std::uint64_t number : {1, 2, 3}) pass(name, number, others);
}

void NameCipher::change(std::span<std::byte> name) const { change(name, Others::change); }

void NameCipher::change_path(std::span<std::byte> path) const {
  while (!path.empty()) {
    const auto end = static_cast<std::size_t>(std::ranges::find(path, std::byte{'/'}) - path.begin());
    change(path.first(end));
    path = path.subspan(std::min(end + 1, path.size()));
  }
}

std::string NameCipher::ascii_only(std::string_view name) const {
  std::string other(name);
  change(std::as_writable_bytes(std::span(other)), Others::stay);
  return other;
}

}  // namespace varve::image
