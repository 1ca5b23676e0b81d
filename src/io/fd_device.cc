#include "io/fd_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/request.h"

namespace varve::io {

namespace {

constexpr unsigned kPoolThreads = 8;

int discard(int fd, bool is_block_device, std::uint64_t offset, std::uint64_t length) {
  if (is_block_device) {
    std::uint64_t range[2] = {offset, length};
    return ::ioctl(fd, BLKDISCARD, range);
  }
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(length));
}

ssize_t call(int fd, bool is_block_device, const Transfer& transfer) {
  const IoRequest& request = transfer.request();
  const auto offset = static_cast<off_t>(transfer.offset());
  const auto count = static_cast<int>(transfer.iov_count());
  switch (request.kind) {
    case IoKind::read:
      return ::preadv2(fd, transfer.iov(), count, offset, 0);
    case IoKind::write:
      return ::pwritev2(fd, transfer.iov(), count, offset, request.durable ? RWF_DSYNC : 0);
    case IoKind::flush:
      return ::fdatasync(fd);
    case IoKind::discard:
      return discard(fd, is_block_device, request.offset, request.length);
  }
  errno = EINVAL;
  return -1;
}

}  // namespace

OpenFile::OpenFile(OpenFile&& other) noexcept
    : fd(std::exchange(other.fd, -1)),
      name(std::move(other.name)),
      geometry(std::move(other.geometry)),
      read_only(other.read_only),
      queue_depth(other.queue_depth) {}

OpenFile::~OpenFile() {
  if (fd < 0) return;
  // A ring torn down in the background may keep the file open a little longer: the lock must not live on with it.
  ::flock(fd, LOCK_UN);
  ::close(fd);
}

FdDevice::FdDevice(OpenFile file, const char* backend) : file_(std::move(file)) { file_.geometry.backend = backend; }

ThreadPool& FdDevice::pool() {
  std::call_once(pool_started_, [this] { pool_ = std::make_unique<ThreadPool>(*this, kPoolThreads); });
  return *pool_;
}

int FdDevice::execute(IoRequest& request) {
  if (const int error = check_request(request, file_.geometry, file_.read_only)) return error;
  Transfer transfer;
  transfer.start(request);
  for (;;) {
    const ssize_t result = call(file_.fd, file_.geometry.is_block_device, transfer);
    switch (transfer.advance(result < 0 ? -errno : result)) {
      case Transfer::Next::finished:
        return 0;
      case Transfer::Next::failed:
        return transfer.error();
      case Transfer::Next::again:
        break;
    }
  }
}

}  // namespace varve::io
