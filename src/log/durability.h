// When is what durable: completions of chunks and payload, shared flushes, and what waits for them.
//
// A chunk counts as written when its own write, every payload write started before it was sealed, and all earlier chunks
// have completed. It is durable when a flush that was started after that has returned (H6), or, if nothing else was
// left to flush, by a durable write: one request of the device instead of two. A failed flush is never
// repeated, a failed write never forgiven: from then on every waiter gets the error (H14, H15). All flushes of a mount pass
// through here, one at a time: of several at once only one may hear of a failure, and what it was about is lost to all.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "device/io_context.h"

namespace varve::log {

// Thread-safe.
class Durability {
 public:
  explicit Durability(device::IoContext& io);
  ~Durability();  // a flush in flight is given up

  void start(Lsn last);  // everything up to `last` is durable already

  std::uint64_t payload_started();
  // `reactor` here and below: of the calling thread, or null; a flush that is due then goes there.
  void payload_done(std::uint64_t ticket, int error, io::Reactor* reactor = nullptr);
  // `commit`: somebody waits for it. `since_ns`: when the oldest of what it holds was acknowledged. True: its write should be a
  // durable one.
  bool chunk_started(Lsn lsn, bool commit, std::uint64_t since_ns);
  // Something that records may name has been written by others: by the cleaner. Call it before there are such records.
  void note_write();
  void chunk_done(Lsn lsn, int error, io::Reactor* reactor = nullptr);

  // Flushes for the caller, which has written something else (trees, superblocks). Blocks, so not for threads that serve a
  // queue; a failure is everybody's.
  Status flush_now();

  Lsn durable() const;
  bool is_durable(Lsn lsn) const { return durable() >= lsn; }
  // since_ns of the oldest chunk that is not durable and that nobody waits for, so that no flush will come for it by itself;
  // 0: there is none.
  std::uint64_t unawaited_since_ns() const { return unawaited_since_ns_; }
  // Calls `ready` once `lsn` is durable, or with the error that makes this impossible; starts a flush when one is
  // needed. May call it at once. `may_let_go`: it may also be told by let_go().
  enum class Patience : std::uint8_t { endless, may_let_go };
  void when_durable(Lsn lsn, std::function<void(Status)> ready, io::Reactor* reactor = nullptr, Patience patience = Patience::endless);
  // It takes longer than anybody should wait without a word: who may let go gets this error. Nothing is lost by that, and what they waited
  // for may become durable yet.
  void let_go(const Error& error);
  std::optional<Error> failure() const;
  void fail(Error error);
  // Called once, outside locks, at the first failure. No waiter is left out because another has thrown.
  void on_failure(std::function<void(const Error&)> handler) { failure_handler_ = std::move(handler); }

 private:
  struct Chunk {
    std::uint64_t payload_before;  // tickets below this must have completed
    bool durable = false;          // when it is done: then everything before it was durable when it started
    bool done = false;
  };
  struct Waiting {
    std::function<void(Status)> ready;
    Patience patience;
  };
  using Waiters = std::multimap<Lsn, Waiting>;

  void advance() REQUIRES(mutex_);
  bool nothing_in_flight() const REQUIRES(mutex_) { return payload_.empty() && chunks_.empty(); }
  Waiters take_ready() REQUIRES(mutex_);  // needs no memory
  void set_durable(Lsn lsn) REQUIRES(mutex_);
  void forget_unawaited(Lsn last) REQUIRES(mutex_);  // and all before it
  void note_oldest_unawaited() REQUIRES(mutex_);

  struct Flush {  // what it will have made durable
    Lsn chunks;
    std::uint64_t writes;
  };
  Flush begin_flush() REQUIRES(mutex_);
  // These two may let go of `lock`, which the analysis does not know for one of mutex_.
  void start_flush_if_wanted(Lock& lock, io::Reactor* reactor) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;  // unlocks
  void flush_done(const Flush& flush, int error, io::Reactor* reactor);
  int flush_here();
  void go_on(Lock& lock, io::Reactor* reactor) REQUIRES(mutex_) NO_THREAD_SAFETY_ANALYSIS;  // unlocks; with what others wait for
  static void tell(const Waiters& waiters, const Status& status);

  device::IoContext& io_;
  mutable Mutex mutex_;
  std::uint64_t next_ticket_ GUARDED_BY(mutex_) = 1;
  std::set<std::uint64_t> payload_ GUARDED_BY(mutex_);  // in flight
  std::map<Lsn, Chunk> chunks_ GUARDED_BY(mutex_);  // not yet written
  Lsn written_ GUARDED_BY(mutex_), durable_ GUARDED_BY(mutex_);
  std::uint64_t writes_ GUARDED_BY(mutex_) = 0;  // started
  std::uint64_t flushed_ GUARDED_BY(mutex_) = 0;  // so many of the first of them are durable
  bool flushing_ GUARDED_BY(mutex_) = false;
  io::IoRequest flush_request_;  // of the thread that has set flushing_
  Flush flush_;                  // the same
  // Threads in flush_now(). They go first, or fsyncs by many callers would keep a checkpoint waiting.
  unsigned queued_ GUARDED_BY(mutex_) = 0;
  Condition turn_;  // flushing_ or failure_ has changed
  Waiters waiters_ GUARDED_BY(mutex_);
  std::deque<std::pair<Lsn, std::uint64_t>> unawaited_ GUARDED_BY(mutex_);  // with since_ns, by LSN
  std::atomic<std::uint64_t> unawaited_since_ns_{0};     // of the first; read without the mutex
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  std::function<void(const Error&)> failure_handler_;  // set before there are other threads
};

}  // namespace varve::log
