// Keeps what the kernel believes of the number of blocks that files have near the truth.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_set>

#include "base/mutex.h"
#include "base/types.h"
#include "base/wakeable_thread.h"
#include "fs/filesystem.h"

namespace varve::fuse {

// With writeback the kernel asks for the number of blocks again only when somebody closes the file. So a log or a database that stays open
// would keep the number that it had when it was opened, and `tar -S` takes a file without blocks for one hole. Which files were written
// the kernel hears once a second, unless it has asked since. A file without blocks to which a thread begins to write counts as one that
// has a block: what it writes stays in the kernel for half a minute.
class BlockCounts {  // thread-safe
 public:
  // `drop` makes the kernel ask for the attributes of an inode again. It is called on a thread of its own.
  explicit BlockCounts(std::function<void(Ino)> drop);

  // Names in a directory have changed. An older answer about it may still be on its way, which the kernel would believe for ever: it
  // compares no versions of directories that it changes itself.
  void named_in(Ino directory);
  // A cached WRITE has been taken.
  void wrote(Ino ino);
  // A write(2) to a file without blocks is about to be cached.
  void will_write(Ino ino);
  fs::Attr with_unseen(fs::Attr attr) const;
  bool any_unseen() const { return any_unseen_; }
  bool is_unseen(Ino ino) const;
  // Before the attributes that the kernel asks for are read.
  void asked(Ino ino);
  // The kernel holds nothing of it back, or has forgotten it.
  void forget(Ino ino);
  void stop() { thread_.stop(); }

 private:
  void run();
  void note(Ino ino) REQUIRES(mutex_);

  const std::function<void(Ino)> drop_;
  mutable Mutex mutex_;
  std::unordered_set<Ino> stale_ GUARDED_BY(mutex_);   // written since the kernel asked
  std::unordered_set<Ino> unseen_ GUARDED_BY(mutex_);  // without blocks, and being written
  std::atomic<bool> any_stale_{false}, any_unseen_{false};  // as the sets say: spares the lock
  std::atomic<std::uint64_t> last_{0};                      // an inode that is in stale_, or 0
  WakeableThread thread_;
};

}  // namespace varve::fuse
