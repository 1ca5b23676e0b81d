#include "varve/salvage_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/buffer.h"

namespace varve::tool {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// Bounds what one damaged file adds to the report.
constexpr unsigned kMostRangesTold = 8;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string reason() { return std::strerror(errno); }

class Copier {
 public:
  Copier(fs::Filesystem& filesystem, int root, SalvageReport& report)
      : fs_(filesystem), root_(root), report_(report), buffer_(kPieceBytes) {}

  Status copy_entries(Ino ino, int directory, const std::string& path);

 private:
  struct Name {
    std::string name;
    Ino ino;
  };

  template <class Function>
  auto call(Function&& function) {
    fs::Operation operation(fs_.engine(), fs::Caller{});
    return fs::block_on(operation, [&] { return function(operation); });
  }

  std::vector<Name> list(Ino ino, const std::string& path);
  Status copy(const Name& name, int directory, const std::string& path);
  Status copy_directory(Ino ino, const fs::Attr& attr, int parent, const std::string& name, const std::string& path);
  void finish(int fd, const fs::Attr& attr, const std::string& path);
  Status copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  Status copy_data(const fs::Attr& attr, int file, const std::string& path);
  Status copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, std::vector<std::uint64_t>& bad);
  void tell_damage(const std::string& path, const std::vector<std::uint64_t>& bad);
  void copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  void copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  void copy_xattrs(Ino ino, int fd, const std::string& path);

  fs::Filesystem& fs_;
  const int root_;
  SalvageReport& report_;
  AlignedBuffer buffer_;
  std::unordered_map<Ino, std::string> first_paths_;  // of files with several names
};

std::vector<Copier::Name> Copier::list(Ino ino, const std::string& path) {
  std::vector<Name> names;
  std::uint64_t cookie = 0;
  for (bool more = true; more;) {
    std::vector<Name> batch;
    std::uint64_t last = cookie;
    const Status status = call([&](fs::Operation& op) {
      batch.clear();
      last = cookie;
      return fs_.readdir(op, ino, cookie, false, [&](const fs::DirectoryEntry& entry) {
        if (batch.size() == 512) return false;
        batch.push_back({std::string(entry.name), entry.ino});
        last = entry.cookie;
        return true;
      });
    });
    if (!status.ok()) {
      report_.lose(path, "the directory ends here: " + status.error().message());
      break;
    }
    more = !batch.empty() && last > cookie;
    cookie = last;
    std::ranges::copy_if(batch, std::back_inserter(names), [](const Name& n) { return n.name != "." && n.name != ".."; });
  }
  return names;
}

Status Copier::copy_entries(Ino ino, int directory, const std::string& path) {
  for (const Name& name : list(ino, path)) TRY(copy(name, directory, path.empty() ? name.name : path + "/" + name.name));
  return {};
}

Status Copier::copy(const Name& name, int directory, const std::string& path) {
  const auto attr = call([&](fs::Operation& op) { return fs_.getattr(op, name.ino); });
  if (!attr.ok()) {
    report_.lose(path, attr.error().message());
    return {};
  }
  if (S_ISDIR(attr->mode)) return copy_directory(name.ino, *attr, directory, name.name, path);
  if (attr->nlink > 1) {
    const auto [first, fresh] = first_paths_.try_emplace(name.ino, path);
    if (!fresh && ::linkat(root_, first->second.c_str(), directory, name.name.c_str(), 0) == 0) return {};
  }
  if (S_ISREG(attr->mode)) return copy_file(*attr, directory, name.name, path);
  if (S_ISLNK(attr->mode)) copy_symlink(*attr, directory, name.name, path);
  else copy_special(*attr, directory, name.name, path);
  return {};
}

Status Copier::copy_directory(Ino ino, const fs::Attr& attr, int parent, const std::string& name, const std::string& path) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0) {
    report_.lose(path, "cannot be made: " + reason());
    return {};
  }
  const Descriptor directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.ok()) {
    report_.lose(path, "cannot be opened: " + reason());
    return {};
  }
  ++report_.directories;
  TRY(copy_entries(ino, directory.get(), path));
  copy_xattrs(ino, directory.get(), path);
  finish(directory.get(), attr, path);
  return {};
}

Status Copier::copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  const Descriptor file(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.ok()) {
    report_.lose(path, "cannot be made: " + reason());
    return {};
  }
  ++report_.files;
  if (::ftruncate(file.get(), static_cast<off_t>(attr.size)) != 0) report_.lose(path, "its size: " + reason());
  TRY(copy_data(attr, file.get(), path));
  copy_xattrs(attr.ino, file.get(), path);
  finish(file.get(), attr, path);
  return {};
}

Status Copier::copy_data(const fs::Attr& attr, int file, const std::string& path) {
  std::vector<std::uint64_t> bad;
  for (std::uint64_t at = 0; at < attr.size;) {
    const auto data = call([&](fs::Operation& op) { return fs_.seek(op, attr.ino, at, fs::SeekKind::data); });
    if (data.fails_with(Errc::no_such_offset)) break;
    if (data.ok()) at = *data;
    const std::uint64_t length = std::min<std::uint64_t>(kPieceBytes - at % kPieceBytes, attr.size - at);
    TRY(copy_piece(attr.ino, at, length, file, bad));
    at += length;
  }
  tell_damage(path, bad);
  return {};
}

Status Copier::copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, std::vector<std::uint64_t>& bad) {
  const auto out = buffer_.span().first(length);
  const auto got = call([&](fs::Operation& op) { return fs_.read(op, ino, offset, out); });
  if (got.ok()) {
    if (::pwrite(file, out.data(), *got, static_cast<off_t>(offset)) != static_cast<ssize_t>(*got))
      return Error(errc_from_errno(errno), "the host's filesystem: " + reason());
    report_.bytes += *got;
    return {};
  }
  if (length <= kBlockSize) {
    bad.push_back(block_of(offset));
    return {};
  }
  for (std::uint64_t at = 0; at < length; at += kBlockSize)
    TRY(copy_piece(ino, offset + at, std::min<std::uint64_t>(kBlockSize, length - at), file, bad));
  return {};
}

void Copier::tell_damage(const std::string& path, const std::vector<std::uint64_t>& bad) {
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

void Copier::copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  const auto target = call([&](fs::Operation& op) { return fs_.readlink(op, attr.ino); });
  if (!target.ok()) return report_.lose(path, target.error().message());
  if (::symlinkat(target->c_str(), directory, name.c_str()) != 0) return report_.lose(path, "cannot be made: " + reason());
  ++report_.symlinks;
  if (::geteuid() == 0 && ::fchownat(directory, name.c_str(), attr.uid, attr.gid, AT_SYMLINK_NOFOLLOW) != 0)
    report_.lose(path, "its owner: " + reason());
}

void Copier::copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  if (::mknodat(directory, name.c_str(), attr.mode, attr.rdev) != 0) return report_.lose(path, "cannot be made: " + reason());
  ++report_.others;
}

void Copier::copy_xattrs(Ino ino, int fd, const std::string& path) {
  const auto names = call([&](fs::Operation& op) { return fs_.listxattr(op, ino); });
  if (!names.ok()) return report_.lose(path, "extended attributes: " + names.error().message());
  for (const std::string& name : *names) {
    const auto value = call([&](fs::Operation& op) { return fs_.getxattr(op, ino, name); });
    if (!value.ok() || ::fsetxattr(fd, name.c_str(), value->data(), value->size(), 0) != 0)
      report_.lose(path, fmt::format("extended attribute {}: {}", name, value.ok() ? reason() : value.error().message()));
  }
}

void Copier::finish(int fd, const fs::Attr& attr, const std::string& path) {
  if (::geteuid() == 0 && ::fchown(fd, attr.uid, attr.gid) != 0) report_.lose(path, "its owner: " + reason());
  if (::fchmod(fd, attr.mode & 07777) != 0) report_.lose(path, "its mode: " + reason());
  auto time = [](const Timestamp& t) { return timespec{static_cast<time_t>(t.seconds), static_cast<long>(t.nanoseconds)}; };
  const timespec times[] = {time(attr.atime), time(attr.mtime)};
  if (::futimens(fd, times) != 0) report_.lose(path, "its times: " + reason());
}

Status prepare(const std::string& target) {
  std::error_code error;
  std::filesystem::create_directory(target, error);
  const bool empty = !error && std::filesystem::is_empty(target, error);
  if (error) return Error(errc_from_errno(error.value()), fmt::format("{}: {}", target, error.message()));
  if (!empty) return Error(Errc::not_empty, fmt::format("{}: not empty; give a new directory", target));
  return {};
}

}  // namespace

void SalvageReport::lose(std::string path, std::string what) {
  if (++loss_count <= kMostLosses) losses.push_back({std::move(path), std::move(what)});
}

Result<SalvageReport> salvage_copy(fs::Filesystem& filesystem, const std::string& target) {
  TRY(prepare(target));
  const Descriptor root(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.ok()) return Error(errc_from_errno(errno), fmt::format("{}: {}", target, reason()));
  SalvageReport report;
  Copier copier(filesystem, root.get(), report);
  TRY(copier.copy_entries(kRootIno, root.get(), ""));
  return report;
}

}  // namespace varve::tool
