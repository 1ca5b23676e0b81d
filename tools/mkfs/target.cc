#include "mkfs/target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "io/mem_device.h"
#include "lease/leased_device.h"
#include "remote/network_name.h"

namespace varve::mkfs {

namespace {

Error file_error(const std::string& path, const char* what) {
  const int number = errno;
  return {errc_from_errno(number), fmt::format("{}: cannot {}: {}", path, what, std::strerror(number))};
}

Status create_sparse(const std::string& path, std::uint64_t size) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(path, "create");
  const bool sized = ::ftruncate(fd, static_cast<off_t>(size)) == 0;
  const Error error = file_error(path, "set the size");
  ::close(fd);
  if (sized) return {};
  ::unlink(path.c_str());
  return error;
}

}  // namespace

Target::~Target() {
  if (undo_ == Undo::nothing || path_.empty()) return;
  device_.reset();
  if (undo_ == Undo::remove) ::unlink(path_.c_str());
  else if (::truncate(path_.c_str(), static_cast<off_t>(old_size_)) != 0) return;  // it stays larger, which harms nothing
}

Result<Target> Target::open(const TargetRequest& request) {
  Target target(request);
  struct stat status {};
  const bool exists = remote::is_network_name(request.path) || ::stat(request.path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) return file_error(request.path, "examine");
  if (!exists && request.size == 0)
    return Error(Errc::not_found, fmt::format("{} does not exist: to create an image, give --size", request.path));
  if (!exists && request.dry_run) {  // nothing may be created: pretend
    target.device_ = std::make_unique<io::MemDevice>(request.size, request.path);
    target.geometry_ = target.device_->geometry();
    return target;
  }
  if (!exists) {
    TRY(create_sparse(request.path, request.size));
    target.undo_ = Undo::remove;
  }
  TRY(target.open_device());
  return target;
}

Status Target::open_device() {
  io::OpenOptions options;
  options.access = dry_run_ ? io::Access::read_only : io::Access::read_write;
  device_.reset();
  auto device = TRY(lease::LeasedDevice::open(path_, options, {"mkfs.varve", ""}));
  holder_ = device->other_holder();
  device_ = std::move(device);
  geometry_ = device_->geometry();
  return {};
}

Status Target::grow() {
  struct stat status {};
  if (geometry_.size_bytes >= size_ || ::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (dry_run_) {
    geometry_.size_bytes = size_ / kBlockSize * kBlockSize;
    return {};
  }
  old_size_ = static_cast<std::uint64_t>(status.st_size);
  if (old_size_ >= size_) return {};
  if (::truncate(path_.c_str(), static_cast<off_t>(size_)) != 0) return file_error(path_, "grow");
  undo_ = Undo::shrink;
  return open_device();  // the geometry was taken before
}

}  // namespace varve::mkfs
