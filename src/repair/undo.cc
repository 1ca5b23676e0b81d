#include "repair/undo.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/errc.h"
#include "format/codec.h"
#include "io/patient_read.h"
#include "io/reactor.h"
#include "repair/undo_file.h"

namespace varve::repair {

Result<std::unique_ptr<UndoDevice>> UndoDevice::create(io::BlockDevice& below, const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Error(errc_from_errno(errno), fmt::format("{}: cannot create the undo file: {}", path, errno_text()));
  std::unique_ptr<UndoDevice> device(new UndoDevice(below, fd));
  const auto header = encode_undo_header({below.geometry().blocks(), filesystem_on(below)});
  const Lock lock(device->mutex_);
  if (!device->append(header)) return Error(Errc::io, fmt::format("{}: {}", path, errno_text()));
  return device;
}

UndoDevice::~UndoDevice() { ::close(fd_); }

void UndoDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  if (const int error = save(request)) return reactor.finish_later(request, error);
  below_.submit(reactor, request);
}

int UndoDevice::execute(io::IoRequest& request) {
  if (const int error = save(request)) return error;
  return below_.execute(request);
}

int UndoDevice::save(const io::IoRequest& request) {
  if (!request.changes()) return 0;
  const Lock lock(mutex_);
  const std::uint64_t first = block_of(request.offset), end = first + block_of(request.length);
  if (end > saved_.size()) return 0;  // the device below will refuse it
  for (std::uint64_t at = first; at < end;) {
    std::uint64_t run = 0;
    while (at + run < end && run < kMostUndoBlocks && !saved_[at + run]) ++run;
    if (run > 0)
      if (const int error = save_run(at, run)) return error;
    at += run > 0 ? run : 1;
  }
  return 0;
}

int UndoDevice::save_run(std::uint64_t first, std::uint64_t blocks) {
  AlignedBuffer buffer(blocks * kBlockSize);
  const std::vector<bool> is_there = io::read_what_is_there(below_, first * kBlockSize, buffer.span());
  for (std::uint64_t at = 0; at < blocks;) {
    std::uint64_t end = at + 1;
    while (end < blocks && is_there[end] == is_there[at]) ++end;
    const auto bytes = buffer.span().subspan(at * kBlockSize, (end - at) * kBlockSize);
    if (const int error = is_there[at] ? save_bytes(first + at, bytes) : 0) return error;
    if (!is_there[at]) unreadable_ += end - at;
    std::fill_n(saved_.begin() + static_cast<std::ptrdiff_t>(first + at), end - at, true);
    at = end;
  }
  return 0;
}

int UndoDevice::save_bytes(std::uint64_t first, std::span<const std::byte> bytes) {
  const auto blocks = static_cast<std::uint32_t>(block_of(bytes.size()));
  if (const int error = put_record(first, blocks, bytes)) return error;
  records_.emplace_back(first, blocks);
  return 0;
}

std::uint64_t UndoDevice::unreadable() const {
  const Lock lock(mutex_);
  return unreadable_;
}

int UndoDevice::put_record(std::uint64_t first, std::uint32_t blocks, std::span<const std::byte> payload) {
  if (torn_) return EIO;
  const std::uint64_t start = end_;
  const auto header = encode_undo_record({first, blocks, records_.size()}, payload);
  if (append(header) && append(payload) && ::fdatasync(fd_) == 0) return 0;
  const int error = errno ? errno : EIO;
  end_ = start;
  torn_ = ::ftruncate(fd_, static_cast<off_t>(start)) != 0;
  return error;
}

bool UndoDevice::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(end_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    end_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Status UndoDevice::finish() {
  const Lock lock(mutex_);
  AlignedBuffer buffer(kMostUndoBlocks * kBlockSize);
  std::uint32_t crc = 0;
  for (const auto& [first, blocks] : records_) {
    const auto bytes = buffer.span().first(blocks * kBlockSize);
    (void)io::read_what_is_there(below_, first * kBlockSize, bytes);
    crc = crc32c(bytes, crc);
  }
  std::array<std::byte, kUndoEndBytes> payload{};
  format::Writer(payload).put(std::uint64_t{crc});
  if (const int error = put_record(kUndoEnd, 0, payload)) return Error(errc_from_errno(error), std::strerror(error));
  return {};
}

}  // namespace varve::repair
