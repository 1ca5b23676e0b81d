#include "daemon/departure.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/errc.h"
#include "base/logging.h"
#include "daemon/mount_point.h"

namespace varve::daemon {

namespace {

// Detaching makes the kernel write back what it caches only if nobody uses the mount, here or elsewhere: so ask for it before.
void write_back(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  if (::syncfs(fd) != 0) log_warn("{}: {}", directory, errno_text());
  ::close(fd);
}

void detach_politely(const MountPoint& point) {
  if (point.is_there()) write_back(point.directory());
  if (!point.detach(Detach::when_unused).ok()) (void)point.detach(Detach::now);
}

}  // namespace

Departure::Departure(const MountPoint& point, std::function<void()> done)
    : thread_([&point, done = std::move(done)] {
        detach_politely(point);
        done();
      }) {}

Departure::~Departure() { thread_.join(); }

}  // namespace varve::daemon
