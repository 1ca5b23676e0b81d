// Bounds-checked little-endian reading and writing of bytes: the only way bytes become numbers in Varve.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <string_view>

#include "base/types.h"
#include "format/varint.h"

namespace varve::format {

// Writes at a cursor into a fixed span. Overflow sets a flag instead of writing; the caller checks ok() once at the end.
class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}

  template <std::unsigned_integral T>
  void put(T value) {
    if (!room(sizeof(T))) return;
    for (std::size_t i = 0; i < sizeof(T); ++i) out_[at_ + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    at_ += sizeof(T);
  }
  void put48(std::uint64_t value) {
    put(static_cast<std::uint32_t>(value));
    put(static_cast<std::uint16_t>(value >> 32));
  }
  void put_bytes(std::span<const std::byte> bytes) {
    if (!room(bytes.size()) || bytes.empty()) return;
    std::memcpy(out_.data() + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text.data(), text.size()))); }
  void skip_to(std::size_t position) {  // zero-fills
    if (position < at_ || !room(position - at_)) {
      overflow_ = true;
      return;
    }
    std::memset(out_.data() + at_, 0, position - at_);
    at_ = position;
  }

  std::size_t size() const { return at_; }
  bool ok() const { return !overflow_; }

 private:
  bool room(std::size_t n) {
    if (out_.size() - at_ < n) overflow_ = true;
    return !overflow_;
  }
  std::span<std::byte> out_;
  std::size_t at_ = 0;
  bool overflow_ = false;
};

// Reads at a cursor. Running past the end gives zeros and sets a flag; the caller checks ok() once at the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  template <std::unsigned_integral T>
  T get() {
    if (!room(sizeof(T))) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(in_[at_ + i]) << (8 * i);
    at_ += sizeof(T);
    return static_cast<T>(value);
  }
  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint16_t u16() { return get<std::uint16_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }
  std::uint64_t u48() {
    std::uint64_t low = u32();
    return low | static_cast<std::uint64_t>(u16()) << 32;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    const std::byte* const end = read_varint(in_.data() + at_, in_.data() + in_.size(), value);
    if (!end || failed_) {
      failed_ = true;
      return 0;
    }
    at_ = static_cast<std::size_t>(end - in_.data());
    return value;
  }
  std::int64_t signed_varint() {
    const std::uint64_t raw = varint();
    return static_cast<std::int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  std::span<const std::byte> bytes(std::size_t n) {
    if (!room(n)) return {};
    auto part = in_.subspan(at_, n);
    at_ += n;
    return part;
  }
  std::string_view text(std::size_t n) {
    auto part = bytes(n);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  void skip_to(std::size_t position) {
    if (position < at_ || position > in_.size()) failed_ = true;
    else at_ = position;
  }

  std::size_t position() const { return at_; }
  std::size_t left() const { return in_.size() - at_; }
  bool ok() const { return !failed_; }

 private:
  bool room(std::size_t n) {
    if (failed_ || in_.size() - at_ < n) failed_ = true;
    return !failed_;
  }
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace varve::format
