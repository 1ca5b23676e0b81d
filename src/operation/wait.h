// What an operation waits for, and what it has been given so far (operation.h).
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "changes/layers.h"
#include "operation/waiter.h"
#include "tree/node_cache.h"

namespace varve::device {
class Faults;
class IoContext;
}  // namespace varve::device

namespace varve::store {
class Store;
}

namespace varve::tree {
class Trees;
}

namespace varve::operation {

// Which node is meant. An address does not say that alone: an old tree may name by it what was moved away since, and another node stands
// there now.
struct NodeName {
  std::uint64_t address = 0;
  std::uint32_t crc = 0;

  explicit NodeName(const format::NodeRef& ref) : address(ref.address.v), crc(ref.crc) {}
  bool operator==(const NodeName&) const = default;
  struct Hash {
    std::size_t operator()(const NodeName& name) const { return std::hash<std::uint64_t>{}(name.address) ^ name.crc; }
  };
};

// A tree node that could not be read, or was not the one that was wanted.
struct FailedNode {
  Error error;
  BlockAddr where;     // of a snapshot's: it may stand elsewhere by now
  bool noted = false;  // as an error of the filesystem
};

// What became of a node that an operation has asked for; neither of both: it is to ask again.
struct NodeAnswer {
  tree::NodeWant want;
  tree::NodePtr node;
  std::optional<Error> error;
};

// Device blocks that an operation reads for itself.
struct DataRead {
  BlockAddr address;
  Serial seen;  // checkpoint in force when the address was looked up: only the next one can free it for others
  std::uint32_t blocks = 0;
  std::byte* target = nullptr;  // aligned; own.data() unless the caller's buffer takes it directly
  AlignedBuffer own;
  std::uint32_t wanted = 0;  // checksum of the checksums, when it failed last
  unsigned failures = 0;     // in which the same was wanted as before
  bool started = false, done = false;
  bool noted = false;        // that it failed, as an error of the filesystem
  int error = 0;
  io::IoRequest request;
  Waiter* waiter = nullptr;

  std::span<const std::byte> bytes() const { return {target, std::size_t{blocks} * kBlockSize}; }
};

// How far an operation has come with discarding clean segments.
struct Trim {
  std::uint64_t next = 0;     // segment to look at
  std::uint64_t count = 0;    // before that one, waiting for their discard
  std::uint64_t trimmed = 0;  // bytes
  bool started = false;
  bool for_turn = false;      // another one is trimming
  int error = 0;
};

// How far an operation has come with counting the blocks of a part of a file.
struct Count {
  std::uint64_t from = 0, to = 0;
  std::uint64_t version = 0;  // changes::Inode::cleared_version() when it began
  unsigned restarts = 0;      // because others cleared parts of the file
  changes::OwnedSoFar so_far;
  static constexpr unsigned kMostRestarts = 8;
  bool given_up() const { return restarts > kMostRestarts; }
};

// How far an operation has come with allocating blocks [from, to) of a file.
struct Allocation {
  std::uint64_t from = 0, to = 0;
  std::uint64_t version = 0;  // of the content when it began
  changes::OwnedSoFar so_far;
  bool counted = false;       // or that would tell nothing
  std::uint64_t next = 0;     // everything before it is allocated
  std::uint64_t window = 0;   // blocks to try next
};

// How far an operation has come that takes many attempts. Others have none.
struct Steps {
  Trim trim;
  Count count;
  Allocation allocation;
};

// What an attempt that failed with would_block, but need not wait for anything, asks for.
enum class Retry : std::uint8_t {
  no,
  at_once,    // what it had looked at has changed
  with_seal,  // the next chunk is full
};

// What waiting for clean segments has brought so far.
struct SpaceRounds {
  struct Round {
    std::uint64_t number = 0;  // checkpoint::Checkpoints::rounds()
    std::uint64_t clock = 0;   // of the log: how much users had written
  };
  std::optional<Round> last;     // that was looked at
  int fruitless = 0;             // rounds that brought none
  std::uint64_t most_clean = 0;  // segments, at any of them
};

// How far an operation has come with waiting for a checkpoint that makes the charge exact.
struct Recount {
  std::optional<Serial> checkpoint;
  unsigned again = 0;  // how often it was another one, for what had been written over meanwhile
};

struct Wait {
  explicit Wait(WaitTimes& times) : waiter(times) {}

  Waiter waiter;

  // Set by an attempt that failed with would_block; cleared when the wait begins.
  std::vector<tree::NodeWant> nodes;
  std::vector<tree::NodeWant> beside;  // these: read along with them where that takes no request more
  bool for_settled = false;       // the next checkpoint
  bool for_space = false;         // with for_settled: there are too few clean segments
  bool for_room = false;          // less in flight
  std::optional<Lsn> for_durable;
  Retry retry = Retry::no;        // handled inside the filesystem, never seen by the caller

  // Of the last wait, until the next attempt at the latest takes them over: node_reads.h.
  std::vector<NodeAnswer> answers;
  void take_answers();

  // Kept until the operation ends.
  std::unordered_map<NodeName, tree::NodePtr, NodeName::Hash> pins;
  std::unordered_map<NodeName, FailedNode, NodeName::Hash> failed_nodes;
  std::list<DataRead> reads;      // stable addresses; nothing allocated while empty
  std::optional<Lsn> sealed;      // what an fsync waits for
  std::optional<Error> let_go;    // why it is to wait no longer, though that may come yet
  std::optional<Serial> checkpoint;
  std::optional<std::uint64_t> snapshot;  // snapshots::Snapshots::Ticket of a change that it has asked for
  SpaceRounds space;
  Recount recount;
  std::unique_ptr<Steps> steps;
  Steps& made_steps() {
    if (!steps) steps = std::make_unique<Steps>();
    return *steps;
  }
  std::uint64_t sought = 0;       // blocks before it need not be looked at again
};

// Nodes for one attempt: from the operation's pins or the cache; what is missing is noted in the Wait.
class OperationSource : public tree::NodeSource {
 public:
  // `shown`: a snapshot's; null: what the store shows.
  OperationSource(store::Store& store, Wait& wait, const tree::TreeView* shown);
  Result<tree::NodePtr> get(const tree::NodeWant& want) override;
  Result<tree::NodePtr> get_child(const tree::Siblings& siblings, std::uint8_t level) override;
  void prefetch(std::span<const tree::NodeWant> wants) override;

 private:
  tree::NodePtr find(const tree::NodeWant& want);
  Result<tree::NodeWant> placed(const tree::NodeWant& want);
  const tree::TreeView& view() const;

  tree::Trees& trees_;
  device::Faults& faults_;
  device::IoContext& io_;
  Wait& wait_;
  const tree::TreeView* const shown_;
};

}  // namespace varve::operation
