// Errors that users of the mount run into and somebody should know of: logged once per inode.
#pragma once

#include <unordered_set>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace varve::fuse {

class ErrorLog {  // thread-safe
 public:
  // Logs what says that something is broken (I/O errors, damage), with the operation and the inode; not what is part
  // of normal work (no such file).
  void note(const Error& error, const char* operation, Ino ino);

 private:
  Mutex mutex_;
  std::unordered_set<Ino> seen_ GUARDED_BY(mutex_);  // bounded
};

}  // namespace varve::fuse
