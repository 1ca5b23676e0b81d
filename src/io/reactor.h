// A thread's event loop: completions of I/O, watched descriptors, and tasks from other threads, all in one wait().
//
// It belongs to one thread at a time; what others may call says so. Callbacks run inside poll() and wait() only, never in
// submit() or kick(), and may use the reactor. All that are due run, even if one throws.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "io/mailbox.h"
#include "io/request.h"

namespace varve::io {

// How a reactor sleeps and what it can do.
enum class ReactorKind : std::uint8_t {
  best,  // io_uring where it works here; by environment VARVE_IO=threads as `poll`
  poll,  // ppoll(2); devices use threads or sockets
};

class Reactor {
 public:
  // `depth`: requests that a ring holds at a time; more wait for room. Where no ring can be had, it is of the kind `poll`.
  // The thread that first uses it must also destroy it. A process that forks makes its reactors afterwards. Throws
  // std::bad_alloc, or std::system_error where the process has no descriptor left.
  static std::unique_ptr<Reactor> make(ReactorKind kind = ReactorKind::best, unsigned depth = 256);
  // Whether this process may use rings: 0, or the errno that says why not (EPERM, ENOSYS, ENOMEM, …).
  static int probe_ring();

  // What is in flight is abandoned: waits until neither the kernel nor another thread has hold of it.
  virtual ~Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // --- its thread ---
  virtual void kick() = 0;     // hands everything held back to the kernel, in one system call if it can
  virtual unsigned poll() = 0;  // kick(), then runs the callbacks of what has come; returns how many
  // kick(), then sleeps until a callback is due, wake(), or the timeout (negative: for ever); runs the callbacks; returns how many.
  virtual unsigned wait(std::int64_t timeout_ns) = 0;
  // Whether wait() may keep the CPU busy for a moment while requests are in flight, which shortens it. Off at first.
  virtual void may_spin(bool) {}
  // Submitted requests whose `done` was not called yet, those that are handed over included. Any thread.
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  // An operation of this thread waits for what another thread may bring, and will be told here.
  void begin_wait() { ++waits_; }
  void end_wait();
  // Does something come that only this reactor can take? As long as it does, its thread must go on.
  bool is_needed() const { return in_flight() > 0 || waits_ > 0; }

  // Calls `readable` whenever fd is readable (level-triggered). One watch per fd.
  virtual void watch(int fd, std::function<void()> readable) = 0;
  virtual void unwatch(int fd) = 0;

  // --- any thread ---
  void post(std::function<void()> task) { mailbox_.post(std::move(task)); }  // runs it on the reactor's thread
  void wake() { mailbox_.wake(); }                                           // ends a wait()
  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  // device.submit() by the reactor's thread: at once if that is the caller. Needs no memory.
  void hand_over(BlockDevice& device, IoRequest& request);

  // --- for devices ---
  // Entries for the ring, by the reactor's thread; only where there is one.
  virtual bool has_ring() const { return false; }
  virtual void submit(RingEntry& entry);

  void begin(IoRequest& request);  // from now on it is in flight
  // As begin(), of one that another thread will finish.
  void begin_elsewhere(IoRequest& request);
  void finish(IoRequest& request, int error);        // inside poll() or wait(): runs its callbacks
  void finish_later(IoRequest& request, int error);  // in the next poll() or wait(); begins it if it has not begun
  // Any thread, for what has begun elsewhere: runs its callbacks in the reactor's thread. Needs no memory.
  void finish_from_elsewhere(IoRequest& request, int error);
  // The same for one that was taken back (IoRequest::take_back): the reactor's thread submits it to `device` again. Needs no memory.
  void submit_from_elsewhere(BlockDevice& device, IoRequest& request);

 protected:
  Reactor() = default;

  void note_owner() {
    if (!is_mine()) owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  // Tasks, and requests that are finished or handed over.
  unsigned run_arrivals();
  bool has_arrivals() const { return !finished_.empty() || mailbox_.has_wake(); }
  // At the end, when the kernel has let go: waits for other threads, then tells the owners of what is in flight.
  void abandon_all();

  Mailbox mailbox_;

 private:
  using Requests = boost::intrusive::list<IoRequest, boost::intrusive::constant_time_size<false>>;
  using Line = boost::intrusive::slist<RingEntry, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>;

  unsigned finish_all(Line& line);
  unsigned submit_handed();
  unsigned submit_again();

  std::atomic<std::thread::id> owner_;
  std::atomic<std::size_t> in_flight_{0};
  Requests begun_;
  Line finished_;              // by its own thread
  std::size_t elsewhere_ = 0;  // begun there and not back yet
  std::size_t waits_ = 0;      // begun and not over

  Mutex mutex_{LockRank::reactor};
  std::atomic<bool> anything_from_elsewhere_{false};
  Line back_ GUARDED_BY(mutex_);    // finished by other threads
  Line handed_ GUARDED_BY(mutex_);  // to be submitted
  Line again_ GUARDED_BY(mutex_);   // the same, of those begun elsewhere
};

}  // namespace varve::io
