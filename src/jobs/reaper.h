// Frees unlinked inodes that nothing refers to any more. Thread-safe, but for what says otherwise.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "jobs/parts.h"

namespace varve::jobs {

class Reaper {
 public:
  struct Parts {
    const device::Faults& faults;
    operation::Operations& operations;
    Requests& requests;
  };
  explicit Reaper(const Parts& parts) : parts_(parts) {}

  void reap(Ino ino);   // waits: not on the maintenance thread
  void soon(Ino ino);   // at once if it need not wait for anything, else
  void later(Ino ino);  // on the maintenance thread
  bool reap_waiting();  // those; false: none could be freed yet. By the maintenance thread
  bool anything_waits();
  Status reap_orphans();  // all there are; at mount and unmount

 private:
  enum class Hurry : std::uint8_t { may_wait, hurried };  // may it wait for a checkpoint to free memory?
  Status try_once(operation::Operation& operation, Ino ino, Hurry hurry);

  const Parts parts_;
  Mutex mutex_;
  std::vector<Ino> waiting_ GUARDED_BY(mutex_);
};

}  // namespace varve::jobs
