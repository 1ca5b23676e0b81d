#include "store/tree/node_cache.h"

#include <algorithm>
#include <unordered_map>

#include <boost/intrusive/list.hpp>

#include "base/invariant.h"
#include "base/mutex.h"

namespace varve::store {

namespace {

constexpr std::size_t kShardsMax = 16;
constexpr std::size_t kShardBytesMin = 256 << 10;  // fewer shards rather than shards that hold a handful of nodes

std::size_t shards_for(std::size_t bytes_max) {
  std::size_t shards = 1;
  while (shards < kShardsMax && bytes_max / (2 * shards) >= kShardBytesMin) shards *= 2;
  return shards;
}

}  // namespace

Result<boost::intrusive_ptr<const Node>> Node::decode(AlignedBuffer block, const format::NodeExpectation& expected) {
  boost::intrusive_ptr<Node> node(new Node);
  node->block_ = std::move(block);
  const auto bytes = node->block();
  node->header_ = TRY(format::check_node(bytes, expected));
  const bool is_leaf = node->header_.level == 0;
  switch (node->header_.tree) {
    case format::TreeId::inode_file:
      if (is_leaf) node->items_ = TRY(format::decode_items(bytes, node->header_));
      else node->children_ = TRY(format::decode_children(bytes, node->header_));
      break;
    case format::TreeId::reverse_map:
    case format::TreeId::free_map:
      if (!is_leaf) node->slots_ = TRY(format::decode_map_slots(bytes, node->header_));
      break;
    case format::TreeId::super_image: break;
  }
  return NodePtr(std::move(node));
}

std::size_t Node::memory() const {
  return sizeof(Node) + block_.size() + items_.capacity() * sizeof(format::ItemRef) +
         children_.capacity() * sizeof(format::ChildRef) + slots_.capacity() * sizeof(format::NodeRef);
}

// One lock, one table, one clock hand. `clock` is a queue of second chances: eviction takes the front, and what was
// used since it was last there goes round once more.
struct NodeCache::Shard {
  struct Entry : boost::intrusive::list_base_hook<> {
    NodePtr node;
    std::uint32_t crc = 0;
    std::size_t bytes = 0;
    bool recent = false;
  };
  static constexpr std::size_t kEntryOverhead = sizeof(Entry) + 6 * sizeof(void*);  // with hash table and allocator

  mutable Mutex mutex;
  std::unordered_map<BlockAddr, Entry> entries GUARDED_BY(mutex);
  boost::intrusive::list<Entry> clock GUARDED_BY(mutex);
  std::size_t bytes GUARDED_BY(mutex) = 0;
  std::uint64_t hits GUARDED_BY(mutex) = 0;
  std::uint64_t misses GUARDED_BY(mutex) = 0;

  ~Shard() { clock.clear(); }

  // Hands the node out so that its memory is returned outside the lock.
  NodePtr remove(BlockAddr address) REQUIRES(mutex) {
    const auto at = entries.find(address);
    if (at == entries.end()) return nullptr;
    Entry& entry = at->second;
    NodePtr node = std::move(entry.node);
    INVARIANT(bytes >= entry.bytes);
    bytes -= entry.bytes;
    clock.erase(clock.iterator_to(entry));
    entries.erase(at);
    return node;
  }

  void add(NodePtr node, std::uint32_t crc) REQUIRES(mutex) {
    Entry& entry = entries[node->header().address];
    entry.bytes = node->memory() + kEntryOverhead;
    entry.node = std::move(node);
    entry.crc = crc;
    bytes += entry.bytes;
    INVARIANT(clock.size() + 1 == entries.size());
    clock.push_back(entry);
  }

  void shrink(std::size_t bytes_max, std::vector<NodePtr>& evicted) REQUIRES(mutex) {
    INVARIANT(!clock.empty() || bytes == 0);
    while (bytes > bytes_max && !clock.empty()) {
      Entry& entry = clock.front();
      if (entry.recent) {
        entry.recent = false;
        clock.splice(clock.end(), clock, clock.begin());
      } else {
        evicted.push_back(remove(entry.node->header().address));
      }
    }
  }
};

NodeCache::NodeCache(std::uint64_t identity, std::size_t bytes_max)
    : identity_(identity), shard_bytes_max_(bytes_max / shards_for(bytes_max)) {
  for (std::size_t i = shards_for(bytes_max); i > 0; --i) shards_.push_back(std::make_unique<Shard>());
}

NodeCache::~NodeCache() = default;

NodeCache::Shard& NodeCache::shard_of(BlockAddr address) const {
  // The upper bits of the hash: the tables inside use the lower ones.
  return *shards_[(std::hash<BlockAddr>{}(address) >> 48) % shards_.size()];
}

NodePtr NodeCache::find(const NodeWant& want) {
  Shard& shard = shard_of(want.ref.address);
  const Lock lock(shard.mutex);
  const auto at = shard.entries.find(want.ref.address);
  if (at != shard.entries.end()) {
    const auto& header = at->second.node->header();
    if (at->second.crc == want.ref.crc && header.tree == want.tree && header.level == want.level) {
      at->second.recent = true;
      ++shard.hits;
      return at->second.node;
    }
  }
  ++shard.misses;
  return nullptr;
}

Result<NodePtr> NodeCache::insert(const NodeWant& want, AlignedBuffer block) {
  const format::NodeExpectation expected{.identity = identity_,
                                         .address = want.ref.address,
                                         .crc = want.ref.crc,
                                         .tree = want.tree,
                                         .level = want.level};
  NodePtr node = TRY(Node::decode(std::move(block), expected));
  insert(node, want.ref.crc);
  return node;
}

void NodeCache::insert(NodePtr node, std::uint32_t crc) {
  std::vector<NodePtr> freed;  // before the lock, so that it is destroyed after it
  Shard& shard = shard_of(node->header().address);
  const Lock lock(shard.mutex);
  freed.push_back(shard.remove(node->header().address));
  shard.add(std::move(node), crc);
  shard.shrink(shard_bytes_max_, freed);
}

void NodeCache::erase(BlockAddr address) {
  NodePtr freed;
  Shard& shard = shard_of(address);
  const Lock lock(shard.mutex);
  freed = shard.remove(address);
}

void NodeCache::clear() {
  for (const auto& shard : shards_) {
    std::vector<NodePtr> freed;
    const Lock lock(shard->mutex);
    for (auto& [address, entry] : shard->entries) entry.recent = false;
    shard->shrink(0, freed);
  }
}

std::size_t NodeCache::bytes() const {
  std::size_t sum = 0;
  for (const auto& shard : shards_) {
    const Lock lock(shard->mutex);
    sum += shard->bytes;
  }
  return sum;
}

std::uint64_t NodeCache::hits() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) {
    const Lock lock(shard->mutex);
    sum += shard->hits;
  }
  return sum;
}

std::uint64_t NodeCache::misses() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) {
    const Lock lock(shard->mutex);
    sum += shard->misses;
  }
  return sum;
}

}  // namespace varve::store
