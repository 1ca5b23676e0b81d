// The thread that looks after the store: epoch, checkpoints, cleaning, and inodes that wait to be freed. Without background threads
// work() does the same on the thread that calls it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/clock_watch.h"
#include "base/gate.h"
#include "base/heap_trim.h"
#include "base/mutex.h"
#include "fs/options.h"
#include "fs/seal_timing.h"

namespace varve::checkpoint {
struct CheckpointRequest;
}

namespace varve::cleaner {
class Cleaner;
}

namespace varve::io {
class Reactor;
}

namespace varve::store {
class Store;
}

namespace varve::fs {

class Engine;

class Maintenance {
 public:
  explicit Maintenance(Engine& engine);

  void start();
  void stop();  // the engine's I/O goes on

  // Wakes the threads that look after seals, checkpoints and space. Any thread.
  void kick();
  // Does due background work on the calling thread; for mounts without threads. False: there was nothing to do.
  bool work(bool space_wanted);
  // `space`: an operation waits for clean segments, so cleaning is worth another try. Any thread.
  void request_checkpoint(bool space = false);
  // The same by its own thread, for the next work().
  void note_space_wanted() { space_noted_ = checkpoint_wanted_ = true; }
  bool room_is_waited_for();
  // Does something wait for what this thread alone does? A job gives way to that, and goes on afterwards.
  bool is_waited_for();
  // Whether a step of a job that begins now is to give way. To a checkpoint only when it has moved something: the next one may be asked for
  // while one is made, so that a job would never come to anything.
  std::function<bool()> giving_way();
  // After each successful operation. Costs one relaxed load while the threads are awake anyway.
  void after_operation(io::Reactor* reactor) EXCLUDES(the_gate);
  // Somebody waits until all that was acknowledged is durable.
  void note_sync();
  // May there be anything that is not in the trees?
  bool is_armed() const { return armed_; }

 private:
  store::Store& store();
  cleaner::Cleaner& cleaner();
  const Options& options() const;

  void maintain();
  void look_at_the_clock();
  bool seal_is_due();
  bool checkpoint_is_due();
  bool space_is_low();
  bool look_for_space();
  bool feed_holes();  // to heads that want them; false: to none
  bool cleaning_helps();
  void clean_and_checkpoint(bool low, bool waited_for);
  bool job_is_active();  // a cleaning or a change of size that somebody asked for
  std::chrono::nanoseconds job_step();
  bool idle_work_is_left();
  void use_idle_time();
  void tidy();
  Status settle(const checkpoint::CheckpointRequest& request);
  bool clean_round(bool waited_for, checkpoint::CheckpointRequest& request);

  Engine& engine_;
  HeapTrim heap_;
  ClockWatch clock_watch_;
  SyncTimes sync_times_;
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mutex_) = false, poked_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> armed_{false}, checkpoint_wanted_{false}, holes_asked_{false};
  std::atomic<bool> space_wanted_{false}, space_noted_{false};  // by operations that wait; by its own thread
  std::atomic<std::uint64_t> last_operation_ns_;
  std::uint64_t seen_operations_ = 0;
  std::uint64_t tidied_at_;         // log clock when there was nothing left to do in idle time
  std::uint64_t futile_until_;      // log clock before which looking for space is pointless, or nobody needs any
};

}  // namespace varve::fs
