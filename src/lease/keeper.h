// Holds a lease while its program lives: looks at it every few seconds on a thread of its own, and before writes that must be certain.
//
// Lost is final: another holder's lease stands there, or nobody's, or somebody has written a superblock. Nothing may be written from
// then on, because another history of the same filesystem may have begun.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "lease/tenure.h"

namespace varve::lease {

// Thread-safe, but for start(), release() and on_lost(), which are called by one thread.
class Keeper {
 public:
  Keeper(Area area, const Times& times) : area_(area), times_(times) {}
  ~Keeper() { stop(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Begins to hold what a claim has got by a last step that began at `looked_ns`. Errc::no_memory without a thread for it.
  Status start(const Claim& claim, std::uint64_t looked_ns);
  // Ends the holding: the next newcomer need not wait. Only after the last write. A lease that was lost is left to its holder.
  Status release();

  // Before a write: whether it may be made. Looks again if the last look is too old to be trusted, as after a pause of the
  // process or the machine, or if it must be certain, as for a superblock. A look may itself be too old when it is answered, by a
  // disk that had to start: then it looks again, which takes no time any more.
  bool may_write(bool certain);
  // The same for what was admitted earlier and is about to be sent, of what was found out after a moment. Waits for nothing.
  io::WriteGuard::Verdict may_send(std::uint64_t looked_after_ns) const;
  void look_soon();  // also while it rests
  // Nobody else can write to the device, and a look would wake it. From now on the thread looks only while note_use() is called between one
  // turn and the next, again and again. A write that comes after a rest looks first, as after any pause.
  void let_rest() { rests_.store(true, std::memory_order_relaxed); }
  void note_use() {  // the device has been asked for something
    if (rests_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  }
  // See Tenure.
  void expect_first_block(std::uint32_t crc);
  format::Lease lease() const;  // waits for a look that goes on
  std::uint64_t look_age_ns() const;  // of the last one that counts

  // The device has failed in a write of the lease's. The kernel tells of a write that was lost once, and may have told that one.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  // Why nothing may be written any more; empty while the lease is held.
  std::string why_lost() const;
  // Calls `lost` once when the lease is lost, or has been, on the thread that watches it. Waits for a call that goes on: what an
  // empty function replaces is not called afterwards.
  void on_lost(std::function<void(const std::string& why)> lost);

 private:
  enum class Turn : std::uint8_t { usual, wished, end };

  void run();
  Turn wait_for_turn();
  void tell();
  void stop();
  bool look();  // false: it could not be read
  void publish() REQUIRES(tenure_mutex_);

  Area area_;
  const Times times_;
  std::atomic<bool> rests_{false}, used_{false};
  Mutex tell_mutex_{LockRank::lease_tell};    // held while on_lost_ is called; taken before the others
  mutable Mutex tenure_mutex_{LockRank::lease_tenure};  // held during a look; taken before mutex_
  std::optional<Tenure> tenure_ GUARDED_BY(tenure_mutex_);
  bool warned_ GUARDED_BY(tenure_mutex_) = false;
  mutable Mutex mutex_{LockRank::lease};
  Condition wake_;
  std::string why_lost_ GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_lost_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false, told_ GUARDED_BY(mutex_) = false, wished_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> lost_{false}, failed_{false};
  std::atomic<std::uint64_t> trusted_until_ns_{0};   // a copy of the tenure's, so that most writes take no lock
  std::thread thread_;
};

}  // namespace varve::lease
