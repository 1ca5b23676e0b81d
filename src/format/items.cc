// Leaves of trees of items.
#include "base/invariant.h"
#include "format/codec.h"
#include "format/node_block.h"

namespace varve::format {

namespace {

constexpr std::size_t kMinItemBytes = 3;  // tag, offset, length

}  // namespace

Result<std::vector<ItemRef>> decode_items(std::span<const std::byte> block, const NodeHeader& header) {
  if (!is_item_tree(header.tree) || header.level != 0)
    return corrupt("node at block {}: not a leaf of items", header.address);
  if (header.used > kNodePayloadBytes || header.count * kMinItemBytes > header.used)
    return corrupt("leaf at block {}: {} items in {} bytes", header.address, header.count, header.used);
  const auto payload = used_payload(block, header);
  const std::byte* at = payload.data();
  const std::byte* const end = at + payload.size();
  std::vector<ItemRef> items;
  items.reserve(header.count);
  Key key;
  for (unsigned i = 0; i < header.count; ++i) {
    std::uint64_t length = 0;
    at = read_key(at, end, i == 0, last_kind(header.tree), key);
    if (at && key.kind < first_kind(header.tree)) at = nullptr;
    if (at) at = read_varint(at, end, length);
    if (!at) return corrupt("leaf at block {}: bad key of item {}", header.address, i);
    if (length > kMaxItemValue || length > static_cast<std::size_t>(end - at))
      return corrupt("leaf at block {}: item {} has a value of {} bytes", header.address, i, length);
    items.push_back({key, std::span(at, length)});
    at += length;
  }
  if (at != end) return corrupt("leaf at block {}: {} bytes after the last item", header.address, end - at);
  if (items.empty() || items.front().key != header.first)
    return corrupt("leaf at block {}: first key differs from the header", header.address);
  return items;
}

bool LeafBuilder::add(const Key& key, std::span<const std::byte> value) {
  INVARIANT(count_ == 0 || last_ < key);
  if (value.size() > kMaxItemValue) return false;
  std::array<std::byte, kMaxKeyBytes + kMaxVarintBytes> head;
  std::byte* end = write_key(head.data(), count_ ? &last_ : nullptr, key);
  end = write_varint(end, value.size());
  const auto head_bytes = static_cast<std::size_t>(end - head.data());
  if (payload_.size() + head_bytes + value.size() > kNodePayloadBytes) return false;
  if (payload_.capacity() < kNodePayloadBytes) payload_.reserve(kNodePayloadBytes);
  payload_.insert(payload_.end(), head.data(), end);
  payload_.insert(payload_.end(), value.begin(), value.end());
  if (count_ == 0) first_ = key;
  last_ = key;
  ++count_;
  return true;
}

std::uint32_t LeafBuilder::finish(std::span<std::byte> block, std::uint64_t identity, Serial serial, BlockAddr address) {
  INVARIANT(count_ > 0);
  const NodeHeader header{.identity = identity, .serial = serial, .address = address, .tree = tree_,
                          .level = 0, .count = count_, .used = static_cast<std::uint16_t>(payload_.size()),
                          .first = first_};
  const std::uint32_t crc = write_node(block, header, payload_);
  payload_.clear();
  count_ = 0;
  return crc;
}

}  // namespace varve::format
