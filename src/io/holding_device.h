// A decorator for images on a host that may run out of room: a sparse file, a thin volume. A write that fails for want of room is no broken
// device. It is held, with its buffers, and tried again until there is room, or until the user of the device ends that.
//
// To everything above, a write that is held is a slow one: it has been submitted and has not completed. All order in Varve is kept by
// completions and flushes, never by the order of submission. What depends on a write is submitted when that has completed: a flush after
// the chunks that it makes durable, a superblock after the flush, the second copy after the first. So nothing that depends on a held write
// can pass it, and others that are written meanwhile are what a crash may leave of writes in any order (io/block_device.h). For the same
// reason nobody uses its place for something else meanwhile.
//
// It stands above what asks whether a write may be made (lease/leased_device.h), so each try asks again: a writer that has lost its lease
// writes nothing, and the write ends with that error. A write whose room is there, but torn or in part, is made again as a whole.
//
// Not held: a flush, since nobody knows what was lost of the writes before it; what the lease itself writes. A durable write through a page
// cache may fail for what others have lost there, too. So it is made of two requests, a write that is held and a flush that is not.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "io/block_device.h"

namespace varve::io {

struct HoldingTimes {
  std::chrono::nanoseconds first_pause = std::chrono::milliseconds(100), longest_pause = std::chrono::seconds(5);  // between tries
  std::chrono::nanoseconds patience = std::chrono::seconds(5);  // between one word and the next that it still is so
};

// The room of the host, as far as a mount notices it.
struct HostRoom {
  bool is_full = false;          // something is held
  std::uint64_t full_ms = 0;     // for so long
  std::uint64_t held_bytes = 0;
  std::uint64_t times = 0;       // that it became full, this time included
};

// Thread-safe.
class HoldingDevice : public BlockDevice {
 public:
  enum class News : std::uint8_t {
    full,        // the first write is held
    still_full,  // each `patience` from then on
    over,        // nothing is held any more: all is written, or has been given up
  };
  using Listener = std::function<void(News news)>;

  // `below` must outlive it. Nothing is held before begin(), nor with memory for no thread.
  explicit HoldingDevice(BlockDevice& below, const HoldingTimes& times = {}) : below_(below), times_(times) {}
  ~HoldingDevice() override;

  // From now on. `listener` is called by a thread of its own, outside locks; for each `full` comes one `over`. Once.
  Status begin(Listener listener);
  // Waits for a call of the listener that goes on; there is none afterwards.
  void forget_listener();
  HostRoom room() const;

  const Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  std::string refusal() const override { return below_.refusal(); }
  void submit(Reactor& reactor, IoRequest& request) override;
  int execute(IoRequest& request) override;
  void ask(WriteGuard* guard) override { below_.ask(guard); }
  std::uint64_t delivery_ns() const override { return below_.delivery_ns(); }
  Result<bool> shut_out(ShutOut others) override { return below_.shut_out(others); }
  bool is_locked_by_another() override { return below_.is_locked_by_another(); }
  std::optional<Connection> connection() const override { return below_.connection(); }
  void limit_holding(std::uint64_t ns) override;
  Status look_again() override { return below_.look_again(); }
  Status set_length(std::uint64_t bytes) override { return below_.set_length(bytes); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Line = boost::intrusive::slist<RingEntry, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>;
  enum class Part : std::uint8_t { whole, before_flush, flush };

  static void completed(void* context, IoRequest& request, std::uint64_t part);
  bool is_split(const IoRequest& request) const;
  void send(Reactor& reactor, IoRequest& request, Part part);
  void came(IoRequest& request, Part part);
  bool hold(IoRequest& request);
  bool wait_for_turn(IoRequest& request);
  void count(IoRequest& request) REQUIRES(mutex_);
  void settle(IoRequest& request);

  // Its thread. These may let go of `lock`, which the analysis does not know for one of mutex_.
  void run();
  void wait_for_room(Lock& lock) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;  // unlocks
  void try_again(Lock& lock) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;      // unlocks
  void give_up(Lock& lock) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;        // unlocks
  void tell(Lock& lock, News news) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;  // unlocks
  Time end_of_holding() const REQUIRES(mutex_);
  void say_full(int error) const;
  void say_over(const HostRoom& room, bool has_failed) const;

  BlockDevice& below_;
  const HoldingTimes times_;
  std::atomic<bool> holds_{false};
  std::atomic<bool> has_cache_below_{true};  // or it is not known yet: a durable write would hear what has become of others
  Mutex listener_mutex_{LockRank::host_listener};  // held while it is called; taken before mutex_
  Listener listener_ GUARDED_BY(listener_mutex_);
  mutable Mutex mutex_;
  Condition changed_, turn_came_;
  struct Held {
    Line line;                 // of a reactor, and not tried just now
    std::uint64_t turn = 0;    // of the threads that wait inside execute()
    std::uint64_t count = 0, bytes = 0;  // all of them, those that are tried just now included
  } held_ GUARDED_BY(mutex_);
  struct Spell {  // from the first write that is held to the last one
    Time since;
    int error = 0;             // of the last try
    bool progressed = false;   // something that was held has been written since the last try
    bool has_failed = false;   // something that was held has ended with an error
  } spell_ GUARDED_BY(mutex_);
  struct Limit {
    Time since;
    std::chrono::nanoseconds length;
    bool operator==(const Limit&) const = default;
  };
  std::optional<Limit> limit_ GUARDED_BY(mutex_);
  std::uint64_t spells_ GUARDED_BY(mutex_) = 0;
  bool is_full_ GUARDED_BY(mutex_) = false, stopping_ GUARDED_BY(mutex_) = false;
  Time spoke_;             // its thread's: of the last spell that was worth a line
  bool is_quiet_ = false;  // the same: this one is not
  std::thread thread_;
};

}  // namespace varve::io
