// Snapshot of a mounted filesystem.
#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/buffer.h"
#include "support/pattern.h"
#include "support/snapshot.h"

namespace varve::test {

namespace {

constexpr std::size_t kReadUnit = 256 * 1024;
constexpr std::uint64_t kReadWhole = 8u << 20;  // bigger files are read where SEEK_DATA finds something

class FsWalk {
 public:
  explicit FsWalk(FsFixture& fixture) : fixture_(fixture) {}

  Status visit(const std::string& path, const fs::Attr& attr) {
    SnapshotEntry entry = entry_of(attr);
    entry.path = path;
    const auto [first, is_first] = seen_.try_emplace(attr.ino, path);
    entry.first_path = first->second;
    if (S_ISLNK(attr.mode)) entry.symlink = TRY(target_of(attr.ino));
    if (is_first && S_ISREG(attr.mode)) entry.content = TRY(content_of(attr));
    if (is_first) entry.xattrs = TRY(xattrs_of(attr.ino));
    snapshot.entries.push_back(std::move(entry));
    if (!S_ISDIR(attr.mode)) return {};
    if (is_first) return visit_children(path, attr.ino);
    if (attr.nlink != 0) return Error(Errc::corrupt, "a directory with two names");
    return {};  // removed, and held twice
  }

  Snapshot snapshot;
  std::string where;  // for messages

 private:
  Status visit_children(const std::string& path, Ino directory) {
    auto entries = TRY(fixture_.list(directory));
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    const std::string prefix = path == "/" ? path : path + "/";
    for (const ListedEntry& listed : entries) {
      if (listed.name == "." || listed.name == "..") continue;
      where = prefix + listed.name;
      const fs::Attr attr = TRY(fixture_.lookup(directory, listed.name));
      if (attr.ino != listed.ino) return Error(Errc::corrupt, "readdir and lookup disagree in the inode");
      if (listed.type != (attr.mode & S_IFMT) >> 12) return Error(Errc::corrupt, "readdir gives a wrong type");
      TRY(visit(where, attr));
    }
    return {};
  }

  Result<std::string> target_of(Ino ino) {
    return fixture_.call([&](fs::Operation& op) { return fixture_.fs().readlink(op, ino); });
  }

  Result<std::string> xattrs_of(Ino ino) {
    auto& fs = fixture_.fs();
    auto names = TRY(fixture_.call([&](fs::Operation& op) { return fs.listxattr(op, ino); }));
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) {
      const auto value = TRY(fixture_.call([&](fs::Operation& op) { return fs.getxattr(op, ino, name); }));
      text += fmt::format("{}={}:{:x} ", name, value.size(), hash_bytes(value));
    }
    return text;
  }

  Result<std::uint64_t> content_of(const fs::Attr& attr) {
    if (attr.size <= kReadWhole) return hash_range(attr, 0, attr.size);
    std::uint64_t sum = 0;
    std::uint64_t at = 0;
    while (at < attr.size) {
      auto data = seek(attr.ino, at, fs::SeekKind::data);
      if (data.fails_with(Errc::no_such_offset)) break;
      const std::uint64_t from = TRY(std::move(data)) / kBlockSize * kBlockSize;
      const std::uint64_t end = TRY(seek(attr.ino, std::max(from, at), fs::SeekKind::hole));
      if (end <= at || end > attr.size) return Error(Errc::corrupt, "SEEK_HOLE after data does not advance");
      at = std::min(attr.size, round_up(end, kBlockSize));
      sum += TRY(hash_range(attr, from, at));
    }
    return sum;
  }

  Result<std::uint64_t> seek(Ino ino, std::uint64_t offset, fs::SeekKind kind) {
    return fixture_.call([&](fs::Operation& op) { return fixture_.fs().seek(op, ino, offset, kind); });
  }

  Result<std::uint64_t> hash_range(const fs::Attr& attr, std::uint64_t from, std::uint64_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t at = from; at < end; at += kReadUnit) {
      const std::size_t want = std::min<std::uint64_t>(kReadUnit, end - at);
      const std::size_t got = TRY(fixture_.call([&](fs::Operation& op) {
        return fixture_.fs().read(op, attr.ino, at, buffer_.span().first(round_up(want, kBlockSize)));
      }));
      if (got != std::min<std::uint64_t>(round_up(want, kBlockSize), attr.size - at)) {
        return Error(Errc::corrupt, fmt::format("short read of {} bytes at {}", got, at));
      }
      for (std::size_t done = 0; done < want; done += kBlockSize) {
        const auto block = buffer_.span().subspan(done, std::min(kBlockSize, want - done));
        sum += hash_of_block(block_of(at + done), block);
      }
    }
    return sum;
  }

  FsFixture& fixture_;
  AlignedBuffer buffer_{kReadUnit};
  std::unordered_map<Ino, std::string> seen_;
};

Status walk_all(FsFixture& fixture, const ModelFs* model, FsWalk& walk) {
  walk.where = "/";
  const fs::Attr root = TRY(fixture.getattr(model ? model->inode(kModelRoot).ino : kRootIno));
  TRY(walk.visit("/", root));
  if (!model) return {};
  for (const auto& [slot, id] : model->slots()) {
    const ModelInode& inode = model->inode(id);
    if (inode.nlink != 0) continue;
    walk.where = slot;
    const fs::Attr attr = TRY(fixture.getattr(inode.ino));
    TRY(walk.visit(slot, attr));
  }
  return {};
}

}  // namespace

Snapshot kept_beside(FsFixture& fixture, Serial snapshot) {
  fixture.show(snapshot);
  FsWalk walk(fixture);
  const Status status = walk_all(fixture, nullptr, walk);
  fixture.show({});
  if (!status.ok()) walk.snapshot.error = fmt::format("{}: {}", walk.where, status.error().message());
  return std::move(walk.snapshot);
}

// Each is mounted by itself, and read in the running filesystem, too. In the order of their names, as in the model.
static void walk_kept(FsFixture& fixture, Snapshot& all) {
  if (!fixture.options().snapshot.empty()) return;
  auto items = fixture.fs().snapshots().snapshots;
  std::ranges::sort(items, {}, &fs::SnapshotFacts::name);
  for (const fs::SnapshotFacts& item : items) {
    fs::Options options = fixture.options();
    options.read_only = true;
    options.background = false;
    options.snapshot = item.name;
    FsFixture kept(fixture.device(), options);
    const Status mounted = kept.mount();
    Snapshot found;
    if (mounted.ok()) found = snapshot_of(kept);
    else found.error = "does not mount: " + mounted.error().message();
    const std::string other = difference(found, kept_beside(fixture, Serial{item.serial}));
    if (found.error.empty() && !other.empty()) found.error = "reads differently beside the newest state:\n" + other;
    add_kept(item.name, std::move(found), all);
  }
}

Snapshot snapshot_of(FsFixture& fixture, const ModelFs* model) {
  FsWalk walk(fixture);
  Status status = walk_all(fixture, model, walk);
  if (status.ok()) walk_kept(fixture, walk.snapshot);
  if (!status.ok()) walk.snapshot.error = fmt::format("{}: {}", walk.where, status.error().message());
  return std::move(walk.snapshot);
}

}  // namespace varve::test
