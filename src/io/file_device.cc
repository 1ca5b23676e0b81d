#include "io/file_device.h"

#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/errc.h"
#include "io/reactor.h"
#include "io/transfer.h"
#include "io/write_guard.h"

namespace varve::io {

namespace {

static_assert(sizeof(off_t) == 8, "offsets would be cut at 4 GiB");
constexpr unsigned kPoolThreads = 8;
constexpr std::size_t kMaxSingle = std::size_t{1} << 30;  // bytes of one READ or WRITE; the rest follows
constexpr auto kGuardTurn = std::chrono::milliseconds(20);
constexpr unsigned kGuardTurns = 1500;  // then the lease cannot be looked at: the device has failed
constexpr off_t kGuardFolios = 4 << 20;
constexpr unsigned kDiscardCommand = 0x1200;              // BLOCK_URING_CMD_DISCARD, Linux 6.12

int discard(int fd, bool is_block_device, std::uint64_t offset, std::uint64_t length) {
  if (is_block_device) {
    std::uint64_t range[2] = {offset, length};
    return ::ioctl(fd, BLKDISCARD, range);
  }
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(length));
}

// Emulators of another processor (qemu-user) and some sandboxes know the call without its flags.
ssize_t write_durably(int fd, const iovec* iov, int count, off_t offset) {
  ssize_t done = ::pwritev2(fd, iov, count, offset, RWF_DSYNC);
  if (done >= 0 || errno != EOPNOTSUPP) return done;
  done = ::pwritev(fd, iov, count, offset);
  return done >= 0 && ::fdatasync(fd) != 0 ? -1 : done;
}

ssize_t call(int fd, bool is_block_device, const IoRequest& request, const Transfer& transfer) {
  const auto offset = static_cast<off_t>(transfer.offset());
  const auto count = static_cast<int>(transfer.iov_count());
  switch (request.kind) {
    case IoKind::read:
      return ::preadv(fd, transfer.iov(), count, offset);
    case IoKind::write:
      return request.durable ? write_durably(fd, transfer.iov(), count, offset) : ::pwritev(fd, transfer.iov(), count, offset);
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
      read_only(other.read_only) {}

OpenFile::~OpenFile() {
  if (fd < 0) return;
  // A ring torn down in the background may keep the file open a little longer: the lock must not live on with it.
  ::flock(fd, LOCK_UN);
  ::close(fd);
}

FileDevice::FileDevice(OpenFile file, bool by_ring) : file_(std::move(file)), by_ring_(by_ring) {
  file_.geometry.backend = by_ring ? "io_uring" : "threads";
}

// The end of a block device is where it is now, too.
Status FileDevice::look_again() {
  const off_t end = ::lseek(file_.fd, 0, SEEK_END);
  if (end < 0) return Error(errc_from_errno(errno), fmt::format("{}: cannot read its size: {}", file_.name, errno_text()));
  file_.geometry.size_bytes = static_cast<std::uint64_t>(end) / kBlockSize * kBlockSize;
  return {};
}

Status FileDevice::set_length(std::uint64_t bytes) {
  if (file_.geometry.is_block_device) return BlockDevice::set_length(bytes);
  if (::ftruncate(file_.fd, static_cast<off_t>(bytes)) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: cannot be made {} bytes long: {}", file_.name, bytes, errno_text()));
  return look_again();
}

// --- with blocking system calls ---------------------------------------------------------------------------------------

// It has waited for a thread, and meanwhile the program may have stood still until another one took the device.
int FileDevice::wait_for_leave(const IoRequest& request) const {
  WriteGuard* const guard = guard_.load();
  if (!guard || !request.changes() || request.by_guard) return 0;
  for (unsigned turns = 0; turns < kGuardTurns; ++turns) {
    const WriteGuard::Verdict verdict = guard->may_send(0);
    if (verdict == WriteGuard::Verdict::yes) return 0;
    if (verdict == WriteGuard::Verdict::never) return EBUSY;
    guard->look_soon();
    std::this_thread::sleep_for(kGuardTurn);
  }
  return EIO;
}

// The kernel says the same of a device that has become smaller, or has gone, as of one behind which there is no room.
int FileDevice::meant_by(int error, const IoRequest& request) const {
  if (error != ENOSPC || !file_.geometry.is_block_device) return error;
  const off_t end = ::lseek(file_.fd, 0, SEEK_END);
  return end < 0 || static_cast<std::uint64_t>(end) < request.offset + request.length ? EIO : error;
}

int FileDevice::execute_late(IoRequest& request) {
  const int error = wait_for_leave(request);
  return error ? error : execute(request);
}

int FileDevice::execute(IoRequest& request) {
  if (const int error = check_request(request, file_.geometry, file_.read_only)) return error;
  // What another machine has written is not in this one's page cache. Whole folios: what is dirty in them stays.
  if (request.by_guard && request.kind == IoKind::read && !file_.geometry.direct)
    (void)::posix_fadvise(file_.fd, 0, kGuardFolios, POSIX_FADV_DONTNEED);
  Transfer transfer(request);
  transfer.start();
  for (;;) {
    const ssize_t result = call(file_.fd, file_.geometry.is_block_device, request, transfer);
    switch (transfer.advance(result < 0 ? -errno : result)) {
      case Transfer::Next::finished:
        return 0;
      case Transfer::Next::failed:
        return meant_by(transfer.error(), request);
      case Transfer::Next::again:
        break;
    }
  }
}

ThreadPool& FileDevice::pool() {
  std::call_once(pool_started_, [this] { pool_ = std::make_unique<ThreadPool>(*this, kPoolThreads); });
  return *pool_;
}

// Where there is no thread for it, the reactor's thread does it in its next wait().
void FileDevice::hand_to_pool(Reactor& reactor, IoRequest& request) {
  reactor.begin_elsewhere(request);
  if (pool().add(request)) return;
  reactor.finish_from_elsewhere(request, execute(request));
}

// --- by the ring ------------------------------------------------------------------------------------------------------

void FileDevice::submit(Reactor& reactor, IoRequest& request) {
  if (const int error = check_request(request, file_.geometry, file_.read_only)) return reactor.finish_later(request, error);
  if (!by_ring_ || !reactor.has_ring() || needs_thread(request)) return hand_to_pool(reactor, request);
  static constexpr RingEntry::Calls kCalls{&FileDevice::prepare, &FileDevice::complete};
  request.calls = &kCalls;
  request.carrier = this;
  Transfer(request).start();
  reactor.begin(request);
  reactor.submit(static_cast<RingEntry&>(request));
}

bool FileDevice::needs_thread(const IoRequest& request) const {
  return request.kind == IoKind::discard && file_.geometry.is_block_device && !ring_discards();
}

void FileDevice::prepare(RingEntry& entry, io_uring_sqe& to) {
  auto& request = static_cast<IoRequest&>(entry);
  const auto& device = static_cast<const FileDevice&>(*request.carrier);
  const Transfer transfer(request);
  const int fd = device.file_.fd;
  const iovec* iov = transfer.iov();
  const bool single = transfer.iov_count() == 1;
  const auto bytes = single ? static_cast<unsigned>(std::min(iov->iov_len, kMaxSingle)) : 0U;
  switch (request.kind) {
    case IoKind::read:
      if (single) io_uring_prep_read(&to, fd, iov->iov_base, bytes, transfer.offset());
      else io_uring_prep_readv(&to, fd, iov, transfer.iov_count(), transfer.offset());
      break;
    case IoKind::write:
      if (single) io_uring_prep_write(&to, fd, iov->iov_base, bytes, transfer.offset());
      else io_uring_prep_writev(&to, fd, iov, transfer.iov_count(), transfer.offset());
      if (request.durable) to.rw_flags = RWF_DSYNC;
      break;
    case IoKind::flush:
      io_uring_prep_fsync(&to, fd, IORING_FSYNC_DATASYNC);
      break;
    case IoKind::discard:
      device.prepare_discard(to, request);
      break;
  }
}

void FileDevice::prepare_discard(io_uring_sqe& to, const IoRequest& request) const {
  if (!file_.geometry.is_block_device) {
    io_uring_prep_fallocate(&to, file_.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(request.offset),
                            static_cast<off_t>(request.length));
    return;
  }
  io_uring_prep_rw(IORING_OP_URING_CMD, &to, file_.fd, nullptr, 0, 0);
  to.cmd_op = kDiscardCommand;
  to.addr = request.offset;
  to.addr3 = request.length;
}

// Older kernels know no discards through rings.
bool FileDevice::ring_refuses(const IoRequest& request, int result) const {
  return request.kind == IoKind::discard && file_.geometry.is_block_device && (result == -EOPNOTSUPP || result == -EINVAL);
}

bool FileDevice::complete(RingEntry& entry, int result) {
  auto& request = static_cast<IoRequest&>(entry);
  auto& device = static_cast<FileDevice&>(*request.carrier);
  if (device.ring_refuses(request, result)) {
    device.no_ring_discards();
    device.hand_to_pool(*request.reactor(), request);
    return true;
  }
  Transfer transfer(request);
  int error = 0;
  if (result == -ECANCELED) {  // nobody has asked for that: the kernel has found no thread for what would have to wait
    error = device.execute(request);
  } else {
    const Transfer::Next next = transfer.advance(result);
    if (next == Transfer::Next::again) return false;
    if (next == Transfer::Next::failed) error = device.meant_by(transfer.error(), request);
  }
  request.reactor()->finish(request, error);
  return true;
}

}  // namespace varve::io
