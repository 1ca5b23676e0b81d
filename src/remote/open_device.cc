// open_device(): from a path to the best backend that works on this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/buffer.h"
#include "base/logging.h"
#include "io/block_device.h"
#include "io/device_facts.h"
#include "io/exclusive_use.h"
#include "io/file_device.h"
#include "io/reactor.h"
#include "remote/network_name.h"
#include "remote/open_nbd.h"
#include "remote/open_rbd.h"

namespace varve::remote {

namespace {

bool environment_says(const char* variable, std::string_view value) {
  const char* found = std::getenv(variable);
  return found && found == value;
}

Error open_error(const std::string& path, bool writable) {
  const int error = errno;
  const auto with = [&](Errc code, const char* text) { return Error(code, fmt::format("{}: {}", path, text)); };
  switch (error) {
    case ENOENT:
      return with(Errc::not_found, "no such device or file: check the name");
    case ENOTDIR:
      return with(Errc::not_directory, "a part of this path is not a directory: check the name");
    case EACCES:
      return with(Errc::access, writable ? "permission denied: it must be readable and writable by you (or use sudo); "
                                           "mount -o ro only reads"
                                         : "permission denied: it must be readable by you (or use sudo)");
    case EPERM:
      return with(Errc::not_permitted, "must not be changed (immutable?): see lsattr");
    case EROFS:
      return with(Errc::read_only, "lies on a read-only filesystem: only read-only use is possible, as mount -o ro");
    case ENOMEDIUM:
      return with(Errc::io, "no medium in the drive: insert one");
    case ENXIO:
    case ENODEV:
      return with(Errc::io, "the device is gone: check that it is connected");
    default:
      return Error(errc_from_errno(error), fmt::format("{}: cannot open: {}", path, std::strerror(error)));
  }
}

// Before opening: opening a pipe could hang, and opening some devices does things.
Status check_kind(const struct stat& status, const std::string& path) {
  if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) return {};
  if (S_ISDIR(status.st_mode))
    return Error(Errc::is_directory,
                 fmt::format("{}: is a directory: give the block device or the image file, not a mount point", path));
  const char* kind = S_ISCHR(status.st_mode) ? "a character device" : "a pipe or socket";
  return Error(Errc::invalid, fmt::format("{}: is {}: give a block device or an image file", path, kind));
}

Status check_writable(int fd, const struct stat& status, const std::string& path) {
  int write_protected = 0;
  if (S_ISBLK(status.st_mode) && ::ioctl(fd, BLKROGET, &write_protected) == 0 && write_protected)
    return Error(Errc::read_only, fmt::format("{}: is write-protected: only read-only use is possible, as mount -o ro", path));
  return {};
}

// Block devices have a group that may write everywhere (disk). Its members can have root's rights already, by the device of the system.
bool is_roots_alone(const struct stat& status) {
  if (status.st_uid != 0 || (status.st_mode & S_IWOTH)) return false;
  return S_ISBLK(status.st_mode) || !(status.st_mode & S_IWGRP) || status.st_gid == 0;
}

// Some filesystems take O_DIRECT when opening and refuse it when reading.
bool direct_works(int fd) {
  if (const auto alignment = io::direct_alignment(fd)) return *alignment > 0 && *alignment <= kBlockSize;
  const AlignedBuffer block(kBlockSize);
  return ::pread(fd, const_cast<std::byte*>(block.data()), kBlockSize, 0) >= 0 || errno != EINVAL;
}

// The errno for a write-protected block device is that of missing permissions: look closer.
Error explain_failure(const io::OpenFile& file) {
  const int error = errno;
  const int fd = file.read_only ? -1 : ::open(file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) {
    struct stat status {};
    const bool known = ::fstat(fd, &status) == 0;
    const Status writable = known ? check_writable(fd, status, file.name) : Status();
    ::close(fd);
    if (!writable.ok()) return writable.error();
  }
  errno = error;
  return open_error(file.name, !file.read_only);
}

// Sets file.fd and file.geometry.direct.
Status open_descriptor(io::OpenFile& file, bool buffered) {
  const int flags = (file.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
  if (!buffered) {
    file.fd = ::open(file.name.c_str(), flags | O_DIRECT);
    file.geometry.direct = file.fd >= 0;
    if (file.fd < 0 && errno != EINVAL) return explain_failure(file);
  }
  if (file.fd < 0) file.fd = ::open(file.name.c_str(), flags);
  if (file.fd < 0) return explain_failure(file);
  return {};
}

void leave_direct_if_broken(io::OpenFile& file) {
  if (!file.geometry.direct || direct_works(file.fd)) return;
  const int flags = ::fcntl(file.fd, F_GETFL);
  ::fcntl(file.fd, F_SETFL, flags & ~O_DIRECT);
  file.geometry.direct = false;
}

Result<io::OpenFile> open_file(const std::string& path, const io::OpenOptions& options) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return open_error(path, options.access == io::Access::read_write);
  TRY(check_kind(status, path));
  if (options.exclusive) TRY(io::check_unclaimed(status, path, options.names_holder));

  io::OpenFile file;
  file.name = path;
  file.read_only = options.access == io::Access::read_only;
  TRY(open_descriptor(file, options.buffered || environment_says("VARVE_IO_BUFFERED", "1")));
  if (::fstat(file.fd, &status) != 0) return open_error(path, !file.read_only);
  TRY(check_kind(status, path));  // again: the name may have changed hands
  if (!file.read_only) TRY(check_writable(file.fd, status, path));
  const auto certainty = options.exclusive ? TRY(io::lock_exclusively(file.fd, status, path, !file.read_only, options.names_holder))
                                           : io::Certainty::unsure;
  const bool direct = file.geometry.direct;
  file.geometry = TRY(io::geometry_of(file.fd, status, path, !file.read_only));
  file.geometry.direct = direct;
  file.geometry.may_be_shared = certainty == io::Certainty::unsure;
  file.geometry.is_roots_alone = is_roots_alone(status);
  leave_direct_if_broken(file);
  return file;
}

}  // namespace

Result<std::unique_ptr<io::BlockDevice>> open_device(const std::string& path, const io::OpenOptions& options) {
  if (is_network_name(path)) return path.starts_with("rbd:") ? open_rbd(path, options) : open_nbd(path, options);
  io::OpenFile file = TRY(open_file(path, options));
  const bool use_threads = options.force_threads || environment_says("VARVE_IO", "threads");
  const int ring_error = use_threads ? 0 : io::Reactor::probe_ring();
  if (ring_error) log_info("{}: no io_uring here ({}): threads do the I/O", path, std::strerror(ring_error));
  std::unique_ptr<io::BlockDevice> device = std::make_unique<io::FileDevice>(std::move(file), !use_threads && !ring_error);
  if (!device->geometry().direct) log_debug("{}: through the page cache", path);
  return device;
}

}  // namespace varve::remote
