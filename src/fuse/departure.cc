#include "fuse/departure.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fuse/mount_point.h"

namespace varve::fuse {

namespace {

// What the kernel still caches of a mount that is in use cannot be had by unmounting: ask for it.
void write_back(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  if (::syncfs(fd) != 0) spdlog::warn("{}: {}", directory, std::strerror(errno));
  ::close(fd);
}

Departure::Outcome detach_politely(const std::string& directory) {
  if (detach(directory, Detach::when_unused).ok()) return Departure::Outcome::unused;
  spdlog::warn("{} is in use: those who use it will get errors", directory);
  write_back(directory);
  return detach(directory, Detach::now).ok() ? Departure::Outcome::in_use : Departure::Outcome::failed;
}

}  // namespace

Departure::Departure(std::string directory, std::function<void()> done) {
  std::promise<Outcome> promise;
  outcome_ = promise.get_future();
  thread_ = std::thread([promise = std::move(promise), directory = std::move(directory), done = std::move(done)]() mutable {
    promise.set_value(detach_politely(directory));
    done();
  });
}

Departure::~Departure() { thread_.join(); }

}  // namespace varve::fuse
