#include "support/comparer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace varve::test {

namespace {

constexpr std::size_t kUnit = 64 * 1024;

Result<std::uint64_t> seek(FsFixture& fixture, Ino ino, std::uint64_t offset, fs::SeekKind kind) {
  return fixture.call([&](fs::Operation& op) { return fixture.fs().seek(op, ino, offset, kind); });
}

std::string describe(const std::vector<std::byte>& got, const std::vector<std::byte>& expected, std::uint64_t offset) {
  const auto [found, wanted] = std::mismatch(got.begin(), got.end(), expected.begin());
  const auto at = static_cast<std::uint64_t>(found - got.begin());
  const auto zeros = static_cast<std::size_t>(std::count(got.begin(), got.end(), std::byte{0}));
  return fmt::format("byte {} (block {} + {}) is {:#04x}, expected {:#04x}; {} of the {} bytes from {} are zero",
                     offset + at, block_of(offset + at), (offset + at) % kBlockSize, static_cast<unsigned>(*found),
                     static_cast<unsigned>(*wanted), zeros, got.size(), offset);
}

std::string compare_range(FsFixture& fixture, const ModelInode& inode, std::uint64_t offset, std::size_t length) {
  auto got = fixture.read(inode.ino, offset, length);
  if (!got.ok()) return fmt::format("read of {} bytes at {}: {}", length, offset, got.error().message());
  const std::uint64_t rest = offset < inode.size ? inode.size - offset : 0;
  std::vector<std::byte> expected(std::min<std::uint64_t>(length, rest));
  inode.content.read(offset, expected);
  if (got->size() != expected.size()) {
    return fmt::format("read of {} bytes at {} gives {}, expected {}", length, offset, got->size(), expected.size());
  }
  return *got == expected ? "" : describe(*got, expected, offset);
}

// Reads that are not aligned, cross the end, and start behind it.
std::string odd_reads(FsFixture& fixture, const ModelInode& inode) {
  const std::uint64_t middle = inode.size / 2;
  const std::uint64_t before_end = inode.size > 3 ? inode.size - 3 : 0;
  const std::pair<std::uint64_t, std::size_t> reads[] = {
      {middle, 1}, {middle, 5000}, {before_end, 100}, {inode.size, 10}, {inode.size + 9000, 10}};
  for (const auto& [offset, length] : reads) {
    const std::string text = compare_range(fixture, inode, offset, length);
    if (!text.empty()) return text;
  }
  return "";
}

// No byte that the model knows may lie in what is called a hole.
std::string check_hole(const ModelInode& inode, std::uint64_t from, std::uint64_t end) {
  const auto& pieces = inode.content.pieces();
  auto it = pieces.upper_bound(from);
  if (it != pieces.begin()) --it;
  for (; it != pieces.end() && it->first < end; ++it) {
    if (it->second.end <= from || it->second.kind != ModelContent::Kind::pattern) continue;
    return fmt::format("[{}, {}) is called a hole, but there is data at {}", from, end, std::max(from, it->first));
  }
  return "";
}

std::string check_data(const ModelInode& inode, std::uint64_t from, std::uint64_t end) {
  for (std::uint64_t block = block_of(from); block * kBlockSize < end; ++block) {
    if (inode.content.block_state(block) == ModelContent::BlockState::hole) {
      return fmt::format("[{}, {}) is called data, but block {} was never written", from, end, block);
    }
  }
  return "";
}

// Where data begins at or after `at`; the end of the file if there is none.
Result<std::uint64_t> next_data(FsFixture& fixture, const ModelInode& inode, std::uint64_t at) {
  auto data = seek(fixture, inode.ino, at, fs::SeekKind::data);
  if (data.fails_with(Errc::no_such_offset)) return inode.size;
  return data;
}

std::string seek_step(FsFixture& fixture, const ModelInode& inode, std::uint64_t& at) {
  auto data = next_data(fixture, inode, at);
  if (!data.ok()) return fmt::format("SEEK_DATA at {}: {}", at, data.error().message());
  if (*data < at || *data > inode.size) return fmt::format("SEEK_DATA at {} gives {}", at, *data);
  std::string text = check_hole(inode, at, *data);
  if (!text.empty()) return text;
  if (*data > at) {
    auto same = seek(fixture, inode.ino, at, fs::SeekKind::hole);
    if (!same.ok() || *same != at) return fmt::format("SEEK_DATA leaves {}, but SEEK_HOLE does not stay there", at);
  }
  at = *data;
  if (at == inode.size) return "";
  auto hole = seek(fixture, inode.ino, at, fs::SeekKind::hole);
  if (!hole.ok()) return fmt::format("SEEK_HOLE at {}: {}", at, hole.error().message());
  if (*hole <= at || *hole > inode.size) return fmt::format("SEEK_HOLE in data at {} gives {}", at, *hole);
  text = check_data(inode, at, *hole);
  at = *hole;
  return text;
}

std::string missing_names(FsFixture& fixture, const ModelInode& directory) {
  for (const char* name : {"no-such-name", "fo", "foo "}) {
    if (directory.entries.contains(std::string_view(name))) continue;
    auto attr = fixture.lookup(directory.ino, name);
    if (!attr.fails_with(Errc::not_found)) return fmt::format("lookup of the missing name '{}' finds it", name);
  }
  return "";
}

std::string look_closer(FsFixture& fixture, const ModelInode& inode) {
  if (inode.is_directory()) return missing_names(fixture, inode);
  if (!inode.is_file()) return "";
  std::string text = seek_difference(fixture, inode);
  return text.empty() ? odd_reads(fixture, inode) : text;
}

// Paths of all inodes that both sides have, with the model's inode.
template <class Visit>
void each_known(const ModelFs& model, const Snapshot& found, Visit&& visit) {
  for (const SnapshotEntry& entry : found.entries) {
    auto id = entry.path.starts_with('%') ? model.held(entry.path) : model.resolve(entry.path);
    if (id.ok() && model.inode(*id).ino == entry.ino) visit(entry, model.inode(*id));
  }
}

}  // namespace

std::string content_difference(FsFixture& fixture, const ModelInode& inode) {
  std::string text;
  inode.content.each_touched_range([&](std::uint64_t first, std::uint64_t end) {
    const std::uint64_t last = std::min(end * kBlockSize, inode.size);
    for (std::uint64_t at = first * kBlockSize; at < last && text.empty(); at += kUnit) {
      text = compare_range(fixture, inode, at, std::min<std::uint64_t>(kUnit, last - at));
    }
  });
  return text.empty() ? "there is data where the model has a hole" : text;
}

std::string seek_difference(FsFixture& fixture, const ModelInode& inode) {
  std::string text;
  for (std::uint64_t at = 0; at < inode.size && text.empty();) text = seek_step(fixture, inode, at);
  if (!text.empty()) return text;
  for (const auto kind : {fs::SeekKind::data, fs::SeekKind::hole}) {
    const auto end = seek(fixture, inode.ino, inode.size, kind);
    if (!end.fails_with(Errc::no_such_offset)) return "a seek to the end succeeds";
  }
  return "";
}

std::string compare(FsFixture& fixture, const ModelFs& model, const CompareOptions& options) {
  const Snapshot expected = snapshot_of(model);
  const Snapshot found = snapshot_of(fixture, &model);
  std::string text = difference(expected, found, options);
  const bool equal = text.empty();
  each_known(model, found, [&](const SnapshotEntry& entry, const ModelInode& inode) {
    const bool is_first = entry.path == entry.first_path;  // only there the content was read
    const bool wrong_bytes = !equal && is_first && inode.is_file() && entry.content != inode.content.hash(inode.size);
    std::string more;
    if (wrong_bytes) more = content_difference(fixture, inode);
    if (equal) more = look_closer(fixture, inode);
    if (!more.empty()) text += fmt::format("  {}: {}\n", entry.path, more);
  });
  return text;
}

}  // namespace varve::test
