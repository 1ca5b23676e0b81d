#include "tree/node_cache.h"

#include <algorithm>
#include <unordered_map>

#include <boost/intrusive/list.hpp>

#include "base/invariant.h"
#include "base/mutex.h"

namespace varve::tree {

namespace {

constexpr std::size_t kShardsMax = 16;
constexpr std::size_t kShardBytesMin = 256 << 10;  // fewer shards rather than shards that hold a handful of nodes
constexpr std::size_t kAheadShare = 8;             // of the bound, for what was read ahead

std::size_t shards_for(std::size_t bytes_max) {
  std::size_t shards = 1;
  while (shards < kShardsMax && bytes_max / (2 * shards) >= kShardBytesMin) shards *= 2;
  return shards;
}

bool is_wanted(const Node& node, std::uint32_t crc, const NodeWant& want) {
  return crc == want.ref.crc && node.header().tree == want.tree && node.header().level == want.level;
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
    case format::TreeId::snapshots:
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
// used since it was last there goes round once more. `ahead` is a queue of what waits for its first use.
struct NodeCache::Shard {
  struct Entry : boost::intrusive::list_base_hook<> {
    NodePtr node;
    std::uint32_t crc = 0;
    std::size_t bytes = 0;
    bool recent = false;
    bool is_ahead = false;
  };
  static constexpr std::size_t kEntryOverhead = sizeof(Entry) + 6 * sizeof(void*);  // with hash table and allocator

  mutable Mutex mutex;
  std::unordered_map<BlockAddr, Entry> entries GUARDED_BY(mutex);
  boost::intrusive::list<Entry> clock GUARDED_BY(mutex), ahead GUARDED_BY(mutex);
  std::size_t bytes GUARDED_BY(mutex) = 0, bytes_ahead GUARDED_BY(mutex) = 0;
  std::uint64_t hits GUARDED_BY(mutex) = 0;
  std::uint64_t misses GUARDED_BY(mutex) = 0;

  ~Shard() {
    clock.clear();
    ahead.clear();
  }

  // Hands the node out so that its memory is returned outside the lock.
  NodePtr remove(BlockAddr address) REQUIRES(mutex) {
    const auto at = entries.find(address);
    if (at == entries.end()) return nullptr;
    Entry& entry = at->second;
    NodePtr node = std::move(entry.node);
    INVARIANT(bytes >= entry.bytes);
    bytes -= entry.bytes;
    if (entry.is_ahead) leave_ahead(entry);
    else clock.erase(clock.iterator_to(entry));
    entries.erase(at);
    return node;
  }

  void leave_ahead(Entry& entry) REQUIRES(mutex) {
    INVARIANT(entry.is_ahead && bytes_ahead >= entry.bytes);
    bytes_ahead -= entry.bytes;
    ahead.erase(ahead.iterator_to(entry));
    entry.is_ahead = false;
  }

  void use(Entry& entry) REQUIRES(mutex) {
    if (entry.is_ahead) {
      leave_ahead(entry);
      clock.push_back(entry);
    }
    entry.recent = true;
  }

  void add(NodePtr node, std::uint32_t crc, bool is_ahead) REQUIRES(mutex) {
    Entry& entry = entries[node->header().address];
    entry.bytes = node->memory() + kEntryOverhead;
    entry.node = std::move(node);
    entry.crc = crc;
    entry.is_ahead = is_ahead;
    bytes += entry.bytes;
    INVARIANT(clock.size() + ahead.size() + 1 == entries.size());
    if (is_ahead) bytes_ahead += entry.bytes;
    (is_ahead ? ahead : clock).push_back(entry);
  }

  void shrink(std::size_t bytes_max, std::vector<NodePtr>& evicted) REQUIRES(mutex) {
    INVARIANT(!entries.empty() || bytes == 0);
    while (!ahead.empty() && (bytes_ahead > bytes_max / kAheadShare || (bytes > bytes_max && clock.empty())))
      evicted.push_back(remove(ahead.front().node->header().address));
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
  return *shards_[(std::hash<BlockAddr>{}(address) >> (sizeof(std::size_t) * 6)) % shards_.size()];
}

NodePtr NodeCache::find(const NodeWant& want) {
  Shard& shard = shard_of(want.ref.address);
  const Lock lock(shard.mutex);
  const auto at = shard.entries.find(want.ref.address);
  if (at != shard.entries.end() && is_wanted(*at->second.node, at->second.crc, want)) {
    shard.use(at->second);
    ++shard.hits;
    return at->second.node;
  }
  ++shard.misses;
  return nullptr;
}

bool NodeCache::contains(const NodeWant& want) const {
  const Shard& shard = shard_of(want.ref.address);
  const Lock lock(shard.mutex);
  const auto at = shard.entries.find(want.ref.address);
  return at != shard.entries.end() && is_wanted(*at->second.node, at->second.crc, want);
}

Result<NodePtr> NodeCache::decode(const NodeWant& want, AlignedBuffer block) const {
  const format::NodeExpectation expected{.identity = identity_,
                                         .address = want.ref.address,
                                         .crc = want.ref.crc,
                                         .tree = want.tree,
                                         .level = want.level};
  return Node::decode(std::move(block), expected);
}

Result<NodePtr> NodeCache::insert(const NodeWant& want, AlignedBuffer block) {
  NodePtr node = TRY(decode(want, std::move(block)));
  insert(node, want.ref.crc);
  return node;
}

void NodeCache::insert(NodePtr node, std::uint32_t crc) {
  std::vector<NodePtr> freed;  // before the lock, so that it is destroyed after it
  Shard& shard = shard_of(node->header().address);
  const Lock lock(shard.mutex);
  freed.push_back(shard.remove(node->header().address));
  shard.add(std::move(node), crc, false);
  shard.shrink(shard_bytes_max_, freed);
}

void NodeCache::insert_ahead(NodePtr node, std::uint32_t crc) {
  std::vector<NodePtr> freed;
  Shard& shard = shard_of(node->header().address);
  const Lock lock(shard.mutex);
  if (shard.entries.contains(node->header().address)) return;
  shard.add(std::move(node), crc, true);
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

// There are as many shards as before: those that are too many only have few nodes each.
void NodeCache::bound(std::size_t bytes_max) {
  shard_bytes_max_ = bytes_max / shards_.size();
  for (const auto& shard : shards_) {
    std::vector<NodePtr> freed;
    const Lock lock(shard->mutex);
    shard->shrink(shard_bytes_max_, freed);
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

}  // namespace varve::tree
