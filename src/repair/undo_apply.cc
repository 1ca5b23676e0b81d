#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>

#include "base/buffer.h"
#include "base/counted.h"
#include "base/crc32c.h"
#include "base/errc.h"
#include "format/codec.h"
#include "io/patient_read.h"
#include "repair/undo.h"
#include "repair/undo_file.h"

namespace varve::repair {

namespace {

constexpr std::uint64_t kLargestRecord = kUndoRecordBytes + kMostUndoBlocks * kBlockSize;

class UndoReader {
 public:
  UndoReader(const std::string& path, io::BlockDevice& device)
      : path_(path), device_(device), buffer_(kMostUndoBlocks * kBlockSize) {}
  ~UndoReader() {
    if (fd_ >= 0) ::close(fd_);
  }
  UndoReader(const UndoReader&) = delete;
  UndoReader& operator=(const UndoReader&) = delete;

  Status open();  // and compares the header with the device
  // Visits the records in order. Returns the CRC in the last one, or nothing if that is missing; Errc::invalid when damage
  // is not what a repair that was cut off leaves.
  using Visit = std::function<Status(const UndoRecord&, std::span<const std::byte>)>;
  Result<std::optional<std::uint32_t>> read(const Visit& visit);

 private:
  Result<bool> read_at(std::uint64_t at, std::span<std::byte> bytes) const;  // false: the file ends before
  Result<bool> read_record(std::uint64_t at, UndoRecord& record);             // false: none, or not whole
  Status has_end();

  const std::string& path_;
  io::BlockDevice& device_;
  AlignedBuffer buffer_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  bool ended_ = false;  // the last record is there
};

Result<bool> UndoReader::read_at(std::uint64_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error(errc_from_errno(errno), fmt::format("{}: cannot be read at byte {}: {}", path_, at, errno_text()));
    if (n == 0) return false;
    at += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Status UndoReader::open() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", path_, errno_text()));
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  if (end < 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", path_, errno_text()));
  size_ = static_cast<std::uint64_t>(end);
  std::array<std::byte, kUndoHeaderBytes> bytes{};
  if (!TRY(read_at(0, bytes))) return Error(Errc::invalid, fmt::format("{}: not an undo file", path_));
  const auto header = decode_undo_header(bytes);
  if (!header.ok()) return Error(header.error().code(), fmt::format("{}: {}", path_, header.error().message()));
  if (header->device_blocks != device_.geometry().blocks())
    return Error(Errc::invalid, fmt::format("{}: belongs to a device of {} blocks, {} has {}", path_, header->device_blocks,
                                            device_.name(), device_.geometry().blocks()));
  const std::uint64_t identity = filesystem_on(device_);
  if (header->identity && identity && header->identity != identity)
    return Error(Errc::invalid, fmt::format("{}: belongs to another filesystem than the one on {}", path_, device_.name()));
  return has_end();
}

// Tells a file that is damaged from one of a repair that was cut off.
Status UndoReader::has_end() {
  constexpr std::uint64_t kBytes = kUndoRecordBytes + kUndoEndBytes;
  UndoRecord record;
  ended_ = size_ >= kUndoHeaderBytes + kBytes && TRY(read_record(size_ - kBytes, record)) && record.is_end();
  return {};
}

Result<bool> UndoReader::read_record(std::uint64_t at, UndoRecord& record) {
  std::array<std::byte, kUndoRecordBytes> header;
  if (!TRY(read_at(at, header))) return false;
  record = decode_undo_record(header);
  if (!record.is_end() && (record.blocks == 0 || record.blocks > kMostUndoBlocks)) return false;
  const auto payload = buffer_.span().first(record.payload_bytes());
  if (!TRY(read_at(at + kUndoRecordBytes, payload))) return false;
  return is_whole(record, payload);
}

Result<std::optional<std::uint32_t>> UndoReader::read(const Visit& visit) {
  const std::uint64_t blocks = device_.geometry().blocks();
  std::uint64_t at = kUndoHeaderBytes;
  for (std::uint64_t sequence = 0; at < size_; ++sequence) {
    UndoRecord record;
    const bool whole = TRY(read_record(at, record)) && record.sequence == sequence;
    const bool possible = record.is_end() || (record.first < blocks && record.blocks <= blocks - record.first);
    if (!whole || !possible) {
      if (!ended_ && size_ - at <= kLargestRecord) break;
      return Error(Errc::invalid, fmt::format("{}: damaged at byte {}, record {}: nothing is brought back", path_, at, sequence));
    }
    const auto payload = buffer_.span().first(record.payload_bytes());
    at += kUndoRecordBytes + payload.size();
    if (!record.is_end()) TRY(visit(record, payload));
    else if (at == size_) return std::optional(static_cast<std::uint32_t>(format::Reader(payload).u64()));
  }
  return std::optional<std::uint32_t>();
}

}  // namespace

Result<UndoResult> apply_undo(io::BlockDevice& device, const std::string& path, bool force) {
  UndoReader file(path, device);
  TRY(file.open());
  AlignedBuffer now(kMostUndoBlocks * kBlockSize);
  std::uint32_t crc = 0;
  const auto left = TRY(file.read([&](const UndoRecord& record, std::span<const std::byte> saved) -> Status {
    const auto bytes = now.span().first(saved.size());
    (void)io::read_what_is_there(device, record.first * kBlockSize, bytes);
    crc = crc32c(bytes, crc);
    return {};
  }));
  if (!left && !force)
    return Error(Errc::invalid, fmt::format("{}: has no end: the repair was cut off, or the file has been; -f brings back what is "
                                            "in it", path));
  if (left && *left != crc && !force)
    return Error(Errc::invalid, fmt::format("{}: {} is not as the repair has left it: it has been written to since, or is another one; "
                                            "-f overwrites it all the same", path, device.name()));
  UndoResult result;
  result.complete = left.has_value();
  auto written = file.read([&](const UndoRecord& record, std::span<const std::byte> saved) -> Status {
    TRY(device.write(record.first * kBlockSize, saved));
    result.blocks += record.blocks;
    return {};
  });
  const Status done = written.ok() ? device.flush() : written.error();
  if (!done.ok())
    return Error(done.error().code(), fmt::format("{} (after {} had been brought back; to go on: -f)", done.error().message(),
                                                  counted(result.blocks, "block")));
  return result;
}

}  // namespace varve::repair
