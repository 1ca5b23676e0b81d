#include "fuse/departure.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fuse/mount_point.h"

namespace varve::fuse {

namespace {

// Detaching makes the kernel write back what it caches only if nobody uses the mount, here or elsewhere: so ask for it before.
void write_back(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  if (::syncfs(fd) != 0) spdlog::warn("{}: {}", directory, std::strerror(errno));
  ::close(fd);
}

Departure::Outcome detach_politely(const MountPoint& point) {
  const std::string& directory = point.directory();
  if (point.is_there()) write_back(directory);
  const bool detached = detach(directory, Detach::when_unused).ok() || detach(directory, Detach::now).ok();
  return detached ? Departure::Outcome::detached : Departure::Outcome::failed;
}

}  // namespace

Departure::Departure(const MountPoint& point, std::function<void()> done) {
  std::promise<Outcome> promise;
  outcome_ = promise.get_future();
  thread_ = std::thread([promise = std::move(promise), &point, done = std::move(done)]() mutable {
    promise.set_value(detach_politely(point));
    done();
  });
}

Departure::~Departure() { thread_.join(); }

}  // namespace varve::fuse
