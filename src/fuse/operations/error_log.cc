#include "fuse/operations/error_log.h"

#include "base/logging.h"

namespace varve::fuse {

namespace {

constexpr std::size_t kMaxInodes = 1024;  // a broken device must not fill the log

bool is_worth_logging(Errc code) {
  switch (code) {
    case Errc::io:
    case Errc::corrupt:
    case Errc::needs_fsck:
    case Errc::no_memory:
    case Errc::would_block:  // must never get here
      return true;
    default:
      return false;
  }
}

}  // namespace

void ErrorLog::note(const Error& error, const char* operation, Ino ino) {
  if (!is_worth_logging(error.code())) return;
  {
    const Lock lock(mutex_);
    if (seen_.size() >= kMaxInodes || !seen_.insert(ino).second) return;
  }
  log_error("{} of inode {}: {}", operation, ino, error.message());
}

}  // namespace varve::fuse
