// The running filesystem behind the facade: store, background threads, kernel references, and how an operation is tried.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "cleaner/cleaner.h"
#include "fs/operation.h"
#include "fs/options.h"
#include "fs/references.h"
#include "fs/turn.h"
#include "fs/wait.h"
#include "fs/wait_times.h"
#include "store/store.h"

namespace varve::scrub {
class Scrubber;
}

namespace varve::fs {

class Attempt;
class CleanJob;

class Engine {
 public:
  Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options);
  ~Engine();

  store::Store& store() { return *store_; }
  const Options& options() const { return options_; }
  References& references() { return references_; }
  cleaner::Cleaner& cleaner() { return *cleaner_; }
  scrub::Scrubber& scrubber() { return *scrubber_; }
  CleanJob& clean_job() { return *clean_job_; }
  WaitTimes& wait_times() { return wait_times_; }
  std::uint64_t started_ns() const { return started_ns_; }

  void start_threads();
  void stop_maintenance();  // the engine's I/O goes on
  void stop_threads();

  // Tries an operation once: f(Attempt&) -> Result<T>. Seals when the next chunk is full and tries again.
  template <class F>
  auto attempt(Operation& operation, F&& f);

  // Wakes the threads that look after seals, checkpoints and space.
  void kick();
  // Does due background work on the calling thread; for mounts without threads. False: there was nothing to do.
  bool work(bool space_wanted);
  // `space`: somebody waits for clean segments, so cleaning is worth another try.
  void request_checkpoint(bool space = false);

  bool room_is_waited_for() const { return space_wanted_; }

  Mutex& rename_mutex() { return rename_mutex_; }  // for moves of directories between directories; inside the gate

  // Frees an unlinked inode that nothing refers to any more.
  void reap(Ino ino);        // waits: not on the maintenance thread
  void reap_soon(Ino ino);   // at once if it need not wait for anything, else
  void reap_later(Ino ino);  // on the maintenance thread
  bool reap_waiting();       // those; false: none could be freed yet
  bool anything_to_reap();
  Result<std::uint64_t> trim(Operation& operation, std::uint64_t start, std::uint64_t length, std::uint64_t minimum);
  void start_discard(Trim& trim, io::Reactor* reactor, std::function<void()> came);  // of what that waits for
  Turn& trim_turn() { return trim_turn_; }
  Status reap_orphans();  // at mount and unmount

  std::uint64_t seal_threshold() const { return 1u << 20; }

 private:
  void serve();     // service thread: the engine's I/O queue and the seal timer
  void maintain();  // maintenance thread: epoch, checkpoints, cleaning, reaping
  bool checkpoint_is_due();
  bool space_is_low();
  bool look_for_space();
  bool feed_holes();  // to heads that want them; false: to none
  bool cleaning_helps();
  void clean_and_checkpoint(bool low, bool waited_for);
  std::chrono::nanoseconds clean_job_step();
  bool idle_work_is_left();
  void use_idle_time();
  Status settle(const store::Store::CheckpointRequest& request);
  bool clean_round(bool waited_for, store::Store::CheckpointRequest& request);
  void after(io::Reactor* reactor);
  enum class Reaper : std::uint8_t { waiting, hurried };  // may it wait for a checkpoint to free memory?
  Status try_reap(Operation& operation, Ino ino, Reaper reaper);
  bool take_neighbours(Trim& trim, const std::function<bool(SegmentId)>& is_wanted, std::uint64_t segment_bytes);

  std::unique_ptr<store::Store> store_;
  const Options options_;
  References references_;
  std::unique_ptr<cleaner::Cleaner> cleaner_;
  std::unique_ptr<scrub::Scrubber> scrubber_;
  std::unique_ptr<CleanJob> clean_job_;
  const std::uint64_t started_ns_;
  WaitTimes wait_times_;

  Mutex rename_mutex_;
  Turn trim_turn_;
  std::thread service_, maintenance_;
  Mutex mutex_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mutex_) = false, service_ready_ GUARDED_BY(mutex_) = false, poked_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> service_stop_{false};
  std::atomic<bool> armed_{false}, checkpoint_wanted_{false}, space_wanted_{false}, holes_asked_{false};
  std::atomic<std::uint64_t> last_operation_ns_{0};
  std::uint64_t seen_operations_ = 0;
  std::uint64_t tidied_at_ = 0;  // log clock when there was nothing left to do in idle time
  std::uint64_t futile_until_ = 0;  // log clock before which looking for space again is pointless
  std::vector<Ino> to_reap_ GUARDED_BY(mutex_);
};

// One try of one operation: passes the gate, finds inodes, takes locks, asks for admission.
class Attempt {
 public:
  Attempt(Engine& engine, Operation& operation)
      : engine_(engine),
        store_(engine.store()),
        operation_(operation),
        pass_(store_.gate()),
        source_(store_, operation.wait()) {}
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Engine& engine() { return engine_; }
  store::Store& store() { return store_; }
  Operation& operation() { return operation_; }
  Wait& wait() { return operation_.wait(); }
  OperationSource& source() { return source_; }
  const store::TreeView& view() const { return store_.view(); }

  // The inode with its attributes; Errc::stale if there is none. Takes its lock for a moment.
  Result<store::InodePtr> inode(Ino ino);
  Result<store::InodePtr> directory(Ino ino);  // Errc::not_directory

  // May the operation change something of this size? Errc::read_only, no_space; would_block: wait, or seal first.
  struct Need {
    std::size_t record_bytes = 512;  // what goes into one chunk; no_space if that cannot hold so much
    std::uint64_t blocks = 0;  // new file blocks, at most
    std::uint64_t inodes = 0;
    std::uint64_t payload = 0;  // blocks it brings: waits while too much is in flight or no segment is there for them
    std::uint64_t places = 8;     // of the inode file that change
    std::uint64_t item_bytes = 0;  // that it makes new there, beyond those of its records
    bool frees = false;        // deletes: never refused for space
    bool reaps = false;        // of the thread that makes the checkpoints: cannot wait for one to free memory
  };
  Status admit(const Need& need);

  // Device blocks by address: the bytes when they have been read, else would_block. `target`: where to read to (aligned),
  // or null for a buffer of the operation's own.
  Result<std::span<const std::byte>> fetch(BlockAddr address, std::uint32_t blocks, std::byte* target = nullptr);

  Timestamp now() { return store_.clock().now(); }

 private:
  Status wait_for_count(const Need& need);  // of what the charge cannot take now
  void count_fruitless_rounds();

  Engine& engine_;
  store::Store& store_;
  Operation& operation_;
  store::Gate::Pass pass_;
  OperationSource source_;
  boost::container::small_vector<store::Claim, 1> claims_;  // withdrawn before the gate is left
};

// Exclusive locks of several inodes, taken in ascending order, duplicates once.
class InodeLocks {
 public:
  explicit InodeLocks(std::initializer_list<store::Inode*> inodes);
  ~InodeLocks();
  InodeLocks(const InodeLocks&) = delete;
  InodeLocks& operator=(const InodeLocks&) = delete;

 private:
  boost::container::small_vector<store::Inode*, 6> inodes_;
};

template <class F>
auto Engine::attempt(Operation& operation, F&& f) {
  for (;;) {
    auto result = [&] {
      Attempt attempt(*this, operation);
      return f(attempt);
    }();
    Wait& wait = operation.wait();
    if (const Retry retry = std::exchange(wait.retry, Retry::no); retry != Retry::no) {
      if (retry == Retry::at_once) continue;
      const auto sealed = store_->seal(store::Store::Seal::append, operation.reactor());
      if (!sealed.ok()) return decltype(result)(sealed.error());
      continue;
    }
    if (result.ok()) after(operation.reactor());
    return result;
  }
}

}  // namespace varve::fs
