// The scrub of a mounted filesystem: a walk on a thread of its own, at a bounded rate and idle I/O priority. It is
// started, stopped and asked, and goes on after a remount where it was.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "scrub/pace.h"
#include "scrub/state.h"
#include "scrub/walk.h"

namespace varve::scrub {

// Thread-safe.
class Scrubber {
 public:
  static constexpr std::size_t kMaxFindings = 1000;  // of a pass, kept and logged: a log may be a file that nobody rotates
  // The device is given up as gone after so many reads in a row that it refused.
  static constexpr std::uint64_t kMaxUnreadable = 4096;

  // `save` is called when the position should get to the disk soon: at the end, and every few minutes.
  Scrubber(store::Store& store, std::function<void()> save);
  ~Scrubber() { end(); }
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  // Begins, goes on, or changes the rate of the one that runs. What no checkpoint holds yet is not read: the caller makes
  // one first. Errc::busy: one that was told to stop has not stopped yet, or the filesystem is being unmounted;
  // Errc::no_memory: no thread to be had.
  Status start(const Request& request);
  void stop();  // soon: after at most one step
  void end();   // stops, waits for it, and starts none any more
  State state() const;

 private:
  Status start_thread();
  Position position() const;
  void run();
  bool wait(std::uint64_t ns);  // false: stop
  void take(const Finding& finding);
  void note(const Position& position, const Walk::Step& step);
  void finish(State::Phase phase, std::string reason);

  store::Store& store_;
  const std::function<void()> save_;
  mutable Mutex mutex_{LockRank::job};
  Condition changed_;
  State state_ GUARDED_BY(mutex_);
  format::ScrubMark mark_ GUARDED_BY(mutex_);
  std::uint64_t unlogged_ GUARDED_BY(mutex_) = 0;
  Pace pace_ GUARDED_BY(mutex_){0};
  bool stop_ GUARDED_BY(mutex_) = false, ended_ GUARDED_BY(mutex_) = false;
  bool active_ GUARDED_BY(mutex_) = false;  // the thread has not come to its end
  std::thread thread_;
};

}  // namespace varve::scrub
