#include "compare/walked_state.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/crc32c.h"

namespace varve::test {

namespace {

class Walker {
 public:
  explicit Walker(FsFixture& fixture) : fixture_(fixture), fs_(fixture.fs()) {}

  Status enter(Ino ino, const std::string& path) {
    state.paths.emplace(path.empty() ? "/" : path, ino);
    if (state.inodes.contains(ino)) return {};
    WalkedInode& inode = state.inodes[ino];
    inode.attr = TRY(fixture_.getattr(ino));
    TRY(read_xattrs(ino, inode));
    if (S_ISLNK(inode.attr.mode)) inode.target = TRY(fixture_.call([&](fs::Operation& op) { return fs_.readlink(op, ino); }));
    if (S_ISREG(inode.attr.mode)) TRY(read_blocks(ino, inode));
    if (!S_ISDIR(inode.attr.mode)) return {};
    for (const ListedEntry& entry : TRY(fixture_.list(ino))) {
      if (entry.name == "." || entry.name == "..") continue;
      TRY(enter(entry.ino, path + "/" + entry.name));
      state.inodes[entry.ino].names.insert({ino, entry.name});
    }
    return {};
  }

  WalkedState state;

 private:
  Status read_xattrs(Ino ino, WalkedInode& inode) {
    for (const std::string& name : TRY(fixture_.call([&](fs::Operation& op) { return fs_.listxattr(op, ino); })))
      inode.xattrs[name] = TRY(fixture_.call([&](fs::Operation& op) { return fs_.getxattr(op, ino, name); }));
    return {};
  }

  // Where there are data only: files may be larger than anybody can read.
  Status read_blocks(Ino ino, WalkedInode& inode) {
    const auto seek = [&](std::uint64_t from, fs::SeekKind kind) {
      return fixture_.call([&](fs::Operation& op) { return fs_.seek(op, ino, from, kind); });
    };
    for (std::uint64_t at = 0; at < inode.attr.size;) {
      const auto data = seek(at, fs::SeekKind::data);
      if (data.fails_with(Errc::no_such_offset)) break;
      at = TRY(data) / kBlockSize * kBlockSize;
      const std::uint64_t end = TRY(seek(at, fs::SeekKind::hole));
      for (; at < end; at += kBlockSize) {
        auto bytes = TRY(fixture_.read(ino, at, kBlockSize));
        bytes.resize(kBlockSize);  // zeros behind the end
        if (std::ranges::any_of(bytes, [](std::byte b) { return b != std::byte{}; })) inode.blocks[at / kBlockSize] = crc32c(bytes);
      }
    }
    return {};
  }

  FsFixture& fixture_;
  fs::Filesystem& fs_;
};

}  // namespace

Result<WalkedState> walk(FsFixture& fixture, Serial snapshot) {
  fixture.show(snapshot);
  Walker walker(fixture);
  const Status walked = walker.enter(kRootIno, "");
  fixture.show({});
  if (!walked.ok()) return walked.error();
  return std::move(walker.state);
}

}  // namespace varve::test
