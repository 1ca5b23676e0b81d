#include "repair/undo.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "format/codec.h"
#include "io/forwarding_queue.h"

namespace varve::repair {

namespace {

constexpr std::uint64_t kMagic = 0x314E'5545'5652'4156ULL;  // "VARVEUN1"
constexpr std::size_t kFileHeaderBytes = 16;
constexpr std::size_t kRecordHeaderBytes = 24;
constexpr std::uint64_t kMostBlocks = 256;  // of a record

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool read_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

// What the CRC covers besides the blocks.
std::array<std::byte, 8> sequence_bytes(std::uint64_t sequence) {
  std::array<std::byte, 8> bytes;
  format::Writer(bytes).put(sequence);
  return bytes;
}

}  // namespace

class UndoQueue : public io::ForwardingQueue {
 public:
  explicit UndoQueue(UndoDevice& device) : ForwardingQueue(device.below_.make_queue()), device_(device) {}

  void submit(io::IoRequest& request) override {
    if (const int error = device_.save(request)) return finish_later(request, error);
    ForwardingQueue::submit(request);
  }

 private:
  UndoDevice& device_;
};

Result<std::unique_ptr<UndoDevice>> UndoDevice::create(io::BlockDevice& below, const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Error(errc_from_errno(errno), fmt::format("{}: cannot create the undo file: {}", path, std::strerror(errno)));
  std::unique_ptr<UndoDevice> device(new UndoDevice(below, fd));
  std::array<std::byte, kFileHeaderBytes> header;
  format::Writer out(header);
  out.put(kMagic);
  out.put(below.geometry().blocks());
  if (!write_all(fd, header)) return Error(Errc::io, fmt::format("{}: {}", path, std::strerror(errno)));
  return device;
}

UndoDevice::~UndoDevice() { ::close(fd_); }

std::unique_ptr<io::IoQueue> UndoDevice::make_queue() { return std::make_unique<UndoQueue>(*this); }

int UndoDevice::execute(io::IoRequest& request) {
  if (const int error = save(request)) return error;
  return below_.execute(request);
}

int UndoDevice::save(const io::IoRequest& request) {
  if (request.kind != io::IoKind::write && request.kind != io::IoKind::discard) return 0;
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = block_of(request.offset), end = first + block_of(request.length);
  if (end > saved_.size()) return 0;  // the device below will refuse it
  const std::uint64_t before = saved_blocks_;
  for (std::uint64_t at = first; at < end;) {
    std::uint64_t run = 0;
    while (at + run < end && run < kMostBlocks && !saved_[at + run]) ++run;
    if (run > 0)
      if (const int error = save_run(at, run)) return error;
    at += run > 0 ? run : 1;
  }
  if (saved_blocks_ == before) return 0;
  return ::fdatasync(fd_) == 0 ? 0 : errno;
}

int UndoDevice::save_run(std::uint64_t first, std::uint64_t blocks) {
  AlignedBuffer buffer(blocks * kBlockSize);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto block = buffer.span().subspan(i * kBlockSize, kBlockSize);
    // What cannot be read cannot be brought back, and is lost already.
    if (!below_.read((first + i) * kBlockSize, block).ok()) std::memset(block.data(), 0, block.size());
  }
  const auto sequence = sequence_bytes(sequence_++);
  std::array<std::byte, kRecordHeaderBytes> header;
  format::Writer out(header);
  out.put(first);
  out.put(static_cast<std::uint32_t>(blocks));
  out.put(crc32c(buffer.span(), crc32c(sequence)));
  out.put_bytes(sequence);
  if (!write_all(fd_, header) || !write_all(fd_, buffer.span())) return errno ? errno : EIO;
  for (std::uint64_t i = 0; i < blocks; ++i) saved_[first + i] = true;
  saved_blocks_ += blocks;
  return 0;
}

Result<UndoResult> apply_undo(io::BlockDevice& device, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", path, std::strerror(errno)));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* open) { ::close(*open); });
  std::array<std::byte, kFileHeaderBytes> header;
  if (!read_all(fd, header)) return Error(Errc::invalid, fmt::format("{}: not an undo file", path));
  format::Reader in(header);
  if (in.u64() != kMagic) return Error(Errc::invalid, fmt::format("{}: not an undo file", path));
  if (const std::uint64_t blocks = in.u64(); blocks != device.geometry().blocks())
    return Error(Errc::invalid, fmt::format("{}: belongs to a device of {} blocks, {} has {}", path, blocks, device.name(),
                                            device.geometry().blocks()));
  UndoResult result;
  AlignedBuffer buffer(kMostBlocks * kBlockSize);
  std::array<std::byte, kRecordHeaderBytes> record;
  for (std::uint64_t sequence = 0; read_all(fd, record); ++sequence) {
    format::Reader fields(record);
    const std::uint64_t first = fields.u64();
    const std::uint32_t blocks = fields.u32(), crc = fields.u32();
    if (blocks == 0 || blocks > kMostBlocks || fields.u64() != sequence || first > device.geometry().blocks() ||
        blocks > device.geometry().blocks() - first)
      break;
    const auto bytes = buffer.span().first(blocks * kBlockSize);
    if (!read_all(fd, bytes) || crc32c(bytes, crc32c(sequence_bytes(sequence))) != crc) break;
    TRY(device.write(first * kBlockSize, bytes));
    result.blocks += blocks;
  }
  TRY(device.flush());
  return result;
}

}  // namespace varve::repair
