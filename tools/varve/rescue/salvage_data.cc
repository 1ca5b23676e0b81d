#include "varve/rescue/salvage_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/counted.h"

namespace varve::tool {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// Bounds what one damaged file adds to the report.
constexpr unsigned kMostRangesTold = 8;

// With these the host's filesystem takes nothing more; others are about one file.
bool ends_everything(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO; }

}  // namespace

Status host_refuses(const std::string& what, const std::string& path, SalvageReport& report) {
  const int error = errno;
  if (ends_everything(error))
    return Error(errc_from_errno(error), fmt::format("the host's filesystem: {}: {}: {}; {} with {} copied before", path,
                                                     what, std::strerror(error), counted(report.files, "file"),
                                                     counted(report.bytes, "byte was", "bytes were")));
  report.lose(path, fmt::format("{}: {}", what, std::strerror(error)));
  return {};
}

SalvagedData::SalvagedData(fs::Filesystem& filesystem, SalvageReport& report, const SalvageAdvance& advance)
    : fs_(filesystem), report_(report), advance_(advance), buffer_(kPieceBytes) {}

Status SalvagedData::copy(const fs::Attr& attr, int file, const std::string& path) {
  std::vector<std::uint64_t> bad;
  for (std::uint64_t at = 0; at < attr.size;) {
    const auto data = call([&](fs::Operation& op) { return fs_.seek(op, attr.ino, at, fs::SeekKind::data); });
    if (data.fails_with(Errc::no_such_offset)) break;
    if (data.ok()) at = *data;
    const std::uint64_t length = std::min<std::uint64_t>(kPieceBytes - at % kPieceBytes, attr.size - at);
    if (!TRY(copy_piece(attr.ino, at, length, file, path, bad))) break;
    TRY(advance_(report_));
    at += length;
  }
  tell_damage(path, bad);
  return {};
}

Result<bool> SalvagedData::copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, const std::string& path,
                                std::vector<std::uint64_t>& bad) {
  const auto out = buffer_.span().first(length);
  const auto got = call([&](fs::Operation& op) { return fs_.read(op, ino, offset, out); });
  if (got.ok()) return write(file, out.first(*got), offset, path);
  if (length <= kBlockSize) {
    bad.push_back(block_of(offset));
    return true;
  }
  for (std::uint64_t at = 0; at < length; at += kBlockSize)
    if (!TRY(copy_piece(ino, offset + at, std::min<std::uint64_t>(kBlockSize, length - at), file, path, bad))) return false;
  return true;
}

Result<bool> SalvagedData::write(int file, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = EIO;
      TRY(host_refuses(fmt::format("cannot be written from byte {} on", offset), path, report_));
      return false;
    }
    report_.bytes += static_cast<std::uint64_t>(n);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

void SalvagedData::tell_damage(const std::string& path, const std::vector<std::uint64_t>& bad) {
  report_.damaged_blocks += bad.size();
  std::string ranges;
  unsigned told = 0;
  for (std::size_t i = 0; i < bad.size();) {
    std::size_t n = 1;
    while (i + n < bad.size() && bad[i + n] == bad[i] + n) ++n;
    if (told++ < kMostRangesTold)
      ranges += fmt::format("{}{}-{}", ranges.empty() ? "" : ", ", bad[i] * kBlockSize, (bad[i] + n) * kBlockSize - 1);
    i += n;
  }
  if (told > kMostRangesTold) ranges += fmt::format(" and {} more", told - kMostRangesTold);
  if (!bad.empty()) report_.lose(path, "holes instead of bytes " + ranges);
}

}  // namespace varve::tool
