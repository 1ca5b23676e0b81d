#include "format/item.h"

#include <dirent.h>

#include <algorithm>

#include "base/invariant.h"
#include "format/append.h"
#include "format/codec.h"
#include "format/node.h"

namespace varve::format {

namespace {

constexpr std::uint8_t kUnwrittenExtent = 1;
constexpr std::uint8_t kTail = 2;
constexpr std::size_t kExtentHeadBytes = 12;  // flags, address, clock, estimate
static_assert(kExtentHeadBytes + 4 * kMaxExtentBlocks <= kMaxItemValue);
static_assert(1 + kMaxTail <= kMaxItemValue);

bool is_known_type(std::uint8_t type) {
  return type == DT_REG || type == DT_DIR || type == DT_LNK || type == DT_CHR || type == DT_BLK || type == DT_FIFO ||
         type == DT_SOCK;
}

Result<Extent> decode_unwritten(Reader& in) {
  Extent extent;
  extent.unwritten = true;
  extent.length = in.varint();
  if (!in.ok() || in.left() != 0 || extent.length == 0 || extent.length > kMaxFileBlocks)
    return corrupt("extent: unwritten with length {}", extent.length);
  return extent;
}

// Everything but the CRCs, whose number has been checked.
Result<Extent> decode_extent_head(Reader& in) {
  const std::size_t bytes = in.left();
  const std::uint8_t flags = in.u8();
  if (!in.ok() || (flags & ~kUnwrittenExtent)) return corrupt("extent: unknown flags {:#x}", flags);
  if (flags & kUnwrittenExtent) return decode_unwritten(in);
  Extent extent;
  extent.address = BlockAddr{in.u48()};
  extent.clock = in.u32();
  extent.estimate = in.u8();
  extent.length = in.left() / 4;
  if (!in.ok() || in.left() % 4 != 0 || extent.length == 0 || extent.length > kMaxExtentBlocks)
    return corrupt("extent: value of {} bytes", bytes);
  if (!extent.address || extent.address.v + extent.length > kMaxAddress)
    return corrupt("extent: impossible address {}", extent.address);
  return extent;
}

}  // namespace

bool is_valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

void encode_extent(const Extent& extent, Bytes& out) {
  if (extent.unwritten) {
    append8(out, kUnwrittenExtent);
    append_varint(out, extent.length);
    return;
  }
  INVARIANT(extent.length == extent.crcs.size() && extent.length <= kMaxExtentBlocks);
  append8(out, 0);
  append_fixed(out, extent.address.v, 6);
  append_fixed(out, extent.clock, 4);
  append8(out, extent.estimate);
  for (const std::uint32_t crc : extent.crcs) append_fixed(out, crc, 4);
}

Result<Extent> decode_extent(std::span<const std::byte> value) {
  Reader in(value);
  Extent extent = TRY(decode_extent_head(in));
  if (extent.unwritten) return extent;
  extent.crcs.resize(extent.length);
  for (std::uint32_t& crc : extent.crcs) crc = in.u32();
  return extent;
}

Result<std::uint64_t> extent_length(std::span<const std::byte> value) {
  Reader in(value);
  return TRY(decode_extent_head(in)).length;
}

bool is_tail(std::span<const std::byte> value) { return !value.empty() && value[0] == std::byte{kTail}; }

void encode_tail(std::span<const std::byte> bytes, Bytes& out) {
  INVARIANT(!bytes.empty() && bytes.size() <= kMaxTail);
  append8(out, kTail);
  append_bytes(out, bytes);
}

Result<std::span<const std::byte>> decode_tail(std::span<const std::byte> value) {
  if (!is_tail(value)) return corrupt("tail: it has not the flags of one");
  if (value.size() < 2 || value.size() > 1 + kMaxTail) return corrupt("tail: value of {} bytes", value.size());
  return value.subspan(1);
}

Result<std::uint64_t> owned_blocks(std::span<const std::byte> value) {
  if (!is_tail(value)) return extent_length(value);
  TRY(decode_tail(value));
  return std::uint64_t{0};
}

void encode_dirent(const Dirent& entry, Bytes& out) {
  append8(out, entry.type);
  append_varint(out, entry.ino.v);
  append_text(out, entry.name);
}

Result<Dirent> decode_dirent(std::span<const std::byte> value) {
  Reader in(value);
  Dirent entry;
  entry.type = in.u8();
  entry.ino = Ino{in.varint()};
  if (!in.ok() || !entry.ino) return corrupt("directory entry: no inode");
  if (!is_known_type(entry.type)) return corrupt("directory entry: unknown type {}", entry.type);
  entry.name = in.text(in.left());
  if (!is_valid_name(entry.name)) return corrupt("directory entry: impossible name of {} bytes", entry.name.size());
  return entry;
}

void encode_cookies(std::span<const std::uint64_t> cookies, Bytes& out) {
  std::vector<std::uint64_t> sorted(cookies.begin(), cookies.end());
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t previous = 0;
  for (const std::uint64_t cookie : sorted) {
    append_varint(out, cookie - previous);
    previous = cookie;
  }
}

Result<std::vector<std::uint64_t>> decode_cookies(std::span<const std::byte> value) {
  Reader in(value);
  std::vector<std::uint64_t> cookies;
  std::uint64_t previous = 0;
  while (in.left() > 0) {
    const std::uint64_t cookie = previous + in.varint();
    if (!in.ok() || cookie <= previous) return corrupt("name hash: bad list of cookies");
    cookies.push_back(cookie);
    previous = cookie;
  }
  if (cookies.empty()) return corrupt("name hash: no cookies");
  return cookies;
}

void encode_xattrs(std::span<const Xattr> xattrs, Bytes& out) {
  for (const Xattr& xattr : xattrs) {
    append_varint(out, xattr.name.size());
    append_text(out, xattr.name);
    append_varint(out, xattr.value.size());
    append_bytes(out, xattr.value);
  }
}

Result<std::vector<Xattr>> decode_xattrs(std::span<const std::byte> blob) {
  Reader in(blob);
  std::vector<Xattr> xattrs;
  while (in.left() > 0) {
    const std::uint64_t name_bytes = in.varint();
    if (!in.ok() || name_bytes == 0 || name_bytes > kMaxName) return corrupt("extended attributes: bad name length");
    const std::string_view name = in.text(name_bytes);
    const std::uint64_t value_bytes = in.varint();
    if (!in.ok() || value_bytes > kMaxXattrValue) return corrupt("extended attributes: bad value length");
    const auto value = in.bytes(value_bytes);
    if (!in.ok()) return corrupt("extended attributes: value runs past the end");
    if (name.find('\0') != std::string_view::npos || (!xattrs.empty() && xattrs.back().name >= name))
      return corrupt("extended attributes: bad name or names out of order");
    xattrs.push_back({std::string(name), Bytes(value.begin(), value.end())});
  }
  return xattrs;
}

}  // namespace varve::format
