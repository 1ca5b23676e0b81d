// Reads of tree nodes for operations: of a node there is one request at a time, however many wait for it, and neighbours come in one.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "io/request.h"
#include "operation/wait.h"

namespace varve::device {
class IoContext;
}

namespace varve::tree {
class Trees;
}

namespace varve::operation {

// Thread-safe. Must outlive the requests that it has begun.
class NodeReads {
 public:
  // Blocks that nobody waits for, on their way at a time: neighbours and what lies between. From 2 MiB on no more are read along.
  static constexpr std::uint64_t kMostSpare = 512;

  struct Parts {
    device::IoContext& io;
    tree::Trees& trees;
  };
  explicit NodeReads(const Parts& parts, std::uint64_t most_spare = kMostSpare) : parts_(parts), most_spare_(most_spare) {}
  ~NodeReads();
  NodeReads(const NodeReads&) = delete;
  NodeReads& operator=(const NodeReads&) = delete;

  // Begins what `wait` lacks, with what is beside it, inside a wait that has begun (Waiter::begin). Each node it lacks has an answer
  // by the end of the wait. `reactor`: of the calling thread, null if it has none.
  void begin(Wait& wait, io::Reactor* reactor);
  std::size_t waiting() const;  // for something that is on its way, each as often as it waits

 private:
  struct Waiting {
    Waiter* waiter;
    NodeAnswer* answer;
    const io::Reactor* reactor;  // that it waits with
  };
  struct Slot {
    tree::NodeWant want;
    bool is_ahead = false;   // nobody waited for it when it was asked for
    bool is_known = false;   // others find it in under_way_
    std::vector<Waiting> waiting;  // under mutex_ while it is known
  };
  struct Run;  // one request
  using RunPtr = std::unique_ptr<Run>;
  struct Place {
    Run* run;
    std::size_t slot;
  };

  bool join(const tree::NodeWant& want, const Waiting& waiting) REQUIRES(mutex_);
  std::vector<Slot> missing_of(Wait& wait, const io::Reactor* reactor) REQUIRES(mutex_);
  void add_ahead(std::vector<Slot>& slots, const std::vector<tree::NodeWant>& beside) REQUIRES(mutex_);
  std::vector<RunPtr> runs_of(std::vector<Slot> slots, io::Reactor* reactor) REQUIRES(mutex_);
  void make_known(Run& run) REQUIRES(mutex_);
  std::vector<Waiting> take_waiting(Slot& slot);
  void start(RunPtr run);
  void came(RunPtr run);
  void read_one_by_one(Run& run);
  void deliver(Slot& slot, const Result<tree::NodePtr>& node);
  Result<tree::NodePtr> take(const Run& run, const Slot& slot);
  void give_up(Run& run);
  void forget_spare(Run& run);

  const Parts parts_;
  const std::uint64_t most_spare_;
  mutable Mutex mutex_{LockRank::node_reads};
  std::unordered_map<std::uint64_t, Place> under_way_ GUARDED_BY(mutex_);  // by address
  std::uint64_t spare_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::operation
