#include "send/file_sender.h"

#include <algorithm>

#include <fmt/format.h>

#include "send/mark.h"

namespace varve::send {

using compare::BlockState;

namespace {

// Of one record, always the same, so that a stream can begin in the middle of a file.
constexpr std::uint64_t kPiece = kMostData / compare::kMostDataBytes * compare::kMostDataBytes;

}  // namespace

std::uint64_t end_of_hole(const compare::BlockRun& run, std::uint64_t size) {
  const std::uint64_t end = (run.first + run.length) << kBlockShift;
  return run.was == BlockState::unwritten ? end : std::min(end, round_up(size, kBlockSize));
}

Status add_room_behind(const compare::Ask& ask, Serial snapshot, Ino ino, std::uint64_t size, std::vector<compare::BlockRun>& runs) {
  for (const compare::BlockRun& run : TRY(compare::runs_of(ask, snapshot, ino)))
    if (run.is == BlockState::unwritten && ((run.first + run.length) << kBlockShift) > size) runs.push_back(run);
  return {};
}

// What is behind the end of a file has gone with its size, but for blocks that are set aside there, or were.
Status FileSender::send_contents(Ino ino, const std::string& path, std::uint64_t size, const std::vector<compare::BlockRun>& runs,
                                 std::span<const std::byte> data) {
  TRY(out_.add(Open{path, size}));
  for (const compare::BlockRun& run : runs) {
    const std::uint64_t from = run.first << kBlockShift, to = (run.first + run.length) << kBlockShift;
    if (run.is == BlockState::unwritten) {
      TRY(out_.add(Range{true, from, to - from}));
    } else if (run.is == BlockState::hole) {
      if (const std::uint64_t end = end_of_hole(run, size); end > from) TRY(out_.add(Range{false, from, end - from}));
    } else if (from < size) {
      const std::uint64_t end = std::min(to, size);
      TRY(send_data(ino, from, end, data.first(std::min(data.size(), end - from))));
      data = data.subspan(std::min(data.size(), end - from));
    }
  }
  return {};
}

Status FileSender::send_data(Ino ino, std::uint64_t from, std::uint64_t to, std::span<const std::byte> known) {
  for (std::uint64_t length = 0; from < to; from += length) {
    length = std::min(kPiece, to - from);
    if (out_.skips()) {
      TRY(out_.skip_data(from, length));
      continue;
    }
    const bool is_known = known.size() >= length;
    Bytes bytes = is_known ? Bytes(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(length)) : TRY(ask_data(ino, from, length));
    if (is_known) known = known.subspan(length);
    data_bytes_ += length;
    TRY(out_.add(Data{from, std::move(bytes)}));
  }
  return {};
}

Result<Bytes> FileSender::ask_data(Ino ino, std::uint64_t from, std::uint64_t length) {
  Bytes all;
  while (all.size() < length) {
    const Bytes bytes = TRY(compare::ask_data(ask_, snapshot_, ino, from + all.size()));
    if (bytes.empty()) return Error(Errc::corrupt, fmt::format("inode {} ends before byte {}", ino, from + length));
    const auto taken = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(bytes.size(), length - all.size()));
    all.insert(all.end(), bytes.begin(), bytes.begin() + taken);
  }
  return all;
}

Status FileSender::send_attributes(const std::string& path, const format::Attributes& attributes,
                                   std::optional<std::vector<format::Xattr>> xattrs) {
  if (path == "/" && xattrs) std::erase_if(*xattrs, [](const format::Xattr& one) { return one.name == kReceivedAttribute; });
  return out_.add(Finish{path, attributes.mode, attributes.uid, attributes.gid, attributes.flags, attributes.atime, attributes.mtime,
                         std::move(xattrs)});
}

}  // namespace varve::send
