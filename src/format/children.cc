// Interior nodes of trees of items.
#include "base/invariant.h"
#include "format/codec.h"
#include "format/node_block.h"

namespace varve::format {

namespace {

constexpr std::size_t kAddressAndCrcBytes = 10;
constexpr std::size_t kMinChildBytes = 2 + kAddressAndCrcBytes + 1;  // tag, offset; address, CRC; blocks

}  // namespace

Result<std::vector<ChildRef>> decode_children(std::span<const std::byte> block, const NodeHeader& header) {
  if (!is_item_tree(header.tree) || header.level == 0)
    return corrupt("node at block {}: not an interior node of items", header.address);
  if (header.used > kNodePayloadBytes || header.count * kMinChildBytes > header.used)
    return corrupt("node at block {}: {} children in {} bytes", header.address, header.count, header.used);
  const auto payload = used_payload(block, header);
  const std::byte* at = payload.data();
  const std::byte* const end = at + payload.size();
  std::vector<ChildRef> children;
  children.reserve(header.count);
  Key key;
  std::uint64_t total = 0;
  for (unsigned i = 0; i < header.count; ++i) {
    at = read_key(at, end, i == 0, last_kind(header.tree), key);
    if (!at || static_cast<std::size_t>(end - at) < kAddressAndCrcBytes)
      return corrupt("node at block {}: bad key of child {}", header.address, i);
    ChildRef child{key, {}};
    Reader fixed(std::span(at, kAddressAndCrcBytes));
    child.ref.address = BlockAddr{fixed.u48()};
    child.ref.crc = fixed.u32();
    at = read_varint(at + kAddressAndCrcBytes, end, child.ref.blocks);
    if (!at || !child.ref.address || child.ref.blocks > kMaxAddress)
      return corrupt("node at block {}: bad reference to child {}", header.address, i);
    total += child.ref.blocks;
    children.push_back(child);
  }
  if (at != end) return corrupt("node at block {}: {} bytes after the last child", header.address, end - at);
  if (total > kMaxAddress) return corrupt("node at block {}: {} file blocks below it", header.address, total);
  if (children.empty() || children.front().first != header.first)
    return corrupt("node at block {}: first key differs from the header", header.address);
  return children;
}

bool InteriorBuilder::add(const ChildRef& child) {
  INVARIANT(count_ == 0 || last_ < child.first);
  std::array<std::byte, kMaxKeyBytes + kAddressAndCrcBytes + kMaxVarintBytes> bytes;
  std::byte* end = write_key(bytes.data(), count_ ? &last_ : nullptr, child.first);
  Writer fixed(std::span(end, kAddressAndCrcBytes));
  fixed.put48(child.ref.address.v);
  fixed.put(child.ref.crc);
  end = write_varint(end + kAddressAndCrcBytes, child.ref.blocks);
  const auto size = static_cast<std::size_t>(end - bytes.data());
  if (payload_.size() + size > kNodePayloadBytes) return false;
  if (payload_.capacity() < kNodePayloadBytes) payload_.reserve(kNodePayloadBytes);
  payload_.insert(payload_.end(), bytes.data(), end);
  if (count_ == 0) first_ = child.first;
  last_ = child.first;
  blocks_ += child.ref.blocks;
  ++count_;
  return true;
}

std::uint32_t InteriorBuilder::finish(std::span<std::byte> block, std::uint8_t level, std::uint64_t identity,
                                      Serial serial, BlockAddr address) {
  INVARIANT(count_ > 0 && level > 0);
  const NodeHeader header{.identity = identity, .serial = serial, .address = address, .tree = tree_,
                          .level = level, .count = count_, .used = static_cast<std::uint16_t>(payload_.size()),
                          .first = first_};
  const std::uint32_t crc = write_node(block, header, payload_);
  payload_.clear();
  count_ = 0;
  blocks_ = 0;
  return crc;
}

}  // namespace varve::format
