#include "io/loop_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "io/device_facts.h"

namespace varve::io {

namespace {

namespace files = std::filesystem;

std::string line_of(const files::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

// Those who were mounted without the kernel's claim hold this one (open_device.cc).
bool has_record_lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

}  // namespace

std::vector<std::string> loop_devices_on(const struct stat& image) {
  std::vector<std::string> found;
  std::error_code error;
  for (files::directory_iterator at("/sys/block", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with("loop")) continue;
    const std::string below = line_of(at->path() / "loop/backing_file");
    struct stat status {};
    if (below.empty() || ::stat(below.c_str(), &status) != 0) continue;
    if (status.st_dev == image.st_dev && status.st_ino == image.st_ino) found.push_back("/dev/" + name);
  }
  return found;
}

std::string image_below(const struct stat& device) {
  if (!S_ISBLK(device.st_mode)) return "";
  return line_of(fmt::format("/sys/dev/block/{}:{}/loop/backing_file", major(device.st_rdev), minor(device.st_rdev)));
}

bool is_claimed(const std::string& device) {
  const int fd = ::open(device.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  if (fd >= 0) {
    const bool locked = has_record_lock(fd);
    ::close(fd);
    return locked;
  }
  if (errno == EBUSY) return true;
  struct stat status {};
  return ::stat(device.c_str(), &status) == 0 && !user_of(status).empty();
}

}  // namespace varve::io
