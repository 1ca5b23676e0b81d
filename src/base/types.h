// Strong types and constants shared by every room.
//
// Units: addresses, lengths and file offsets named "block" are in blocks of kBlockSize bytes; everything named
// "bytes" or "offset" is in bytes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <fmt/format.h>

namespace varve {

inline constexpr std::size_t kBlockSize = 4096;
inline constexpr unsigned kBlockShift = 12;
inline constexpr std::uint64_t kMiB = 1u << 20;  // bytes

constexpr std::uint64_t blocks_for(std::uint64_t bytes) { return (bytes + kBlockSize - 1) >> kBlockShift; }
constexpr std::uint64_t block_of(std::uint64_t offset) { return offset >> kBlockShift; }
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return divide_up(value, unit) * unit; }

// A number with a name: no implicit conversion between kinds, ordered, hashable, printable.
template <class Tag>
struct Id {
  std::uint64_t v = 0;

  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id operator+(std::uint64_t n) const { return Id{v + n}; }
  constexpr Id operator-(std::uint64_t n) const { return Id{v - n}; }
  constexpr std::uint64_t operator-(Id other) const { return v - other.v; }
  constexpr Id& operator++() {
    ++v;
    return *this;
  }
  constexpr explicit operator bool() const { return v != 0; }
};

using BlockAddr = Id<struct BlockAddrTag>;  // block number on the device; 0 (a superblock) means "none"
using SegmentId = Id<struct SegmentIdTag>;  // index of a segment
using Ino = Id<struct InoTag>;              // inode number, never reused; 0 means "none"
using Lsn = Id<struct LsnTag>;              // number of a chunk in the chain, from 1
using Serial = Id<struct SerialTag>;        // number of a checkpoint, from 1

inline constexpr Ino kRootIno{1};

// Such inode numbers have only the folder that shows snapshots, and what is in it.
inline constexpr std::uint64_t kInSnapshots = 1ULL << 63;
constexpr bool is_in_snapshots(std::uint64_t inode) { return (inode & kInSnapshots) != 0; }

// For the formatter below.
fmt::format_context::iterator write_number(std::uint64_t number, fmt::format_context& context);

}  // namespace varve

template <class Tag>
struct std::hash<varve::Id<Tag>> {
  std::size_t operator()(varve::Id<Tag> id) const noexcept { return id.v * 0x9E3779B97F4A7C15ULL; }
};

// As "{}" only. What fmt needs for numbers is compiled once, in types.cc.
template <class Tag>
struct fmt::formatter<varve::Id<Tag>> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::format_context::iterator format(varve::Id<Tag> id, fmt::format_context& context) const { return varve::write_number(id.v, context); }
};
