#include "varve/salvage_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/buffer.h"
#include "base/descriptor.h"
#include "varve/salvage_attributes.h"

namespace varve::tool {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// Bounds what one damaged file adds to the report.
constexpr unsigned kMostRangesTold = 8;

// With these the host's filesystem takes nothing more; others are about one file.
bool ends_everything(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO; }

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
  Status cannot(const char* what, const std::string& path);  // a loss, or the end; errno says
  Status copy_directory(const fs::Attr& attr, int parent, const std::string& name, const std::string& path);
  Status copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  Status copy_data(const fs::Attr& attr, int file, const std::string& path);
  // false: the host takes no more of this file, which has been reported.
  Result<bool> copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, const std::string& path,
                          std::vector<std::uint64_t>& bad);
  Result<bool> write(int file, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path);
  void tell_damage(const std::string& path, const std::vector<std::uint64_t>& bad);
  Status copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  Status copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);

  fs::Filesystem& fs_;
  const int root_;
  SalvageReport& report_;
  AlignedBuffer buffer_;
  std::unordered_map<Ino, std::string> first_paths_;  // of files with several names
  std::unordered_set<Ino> entered_{kRootIno};  // directories; names that no repair has judged may lead back to one
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
  if (S_ISDIR(attr->mode)) return copy_directory(*attr, directory, name.name, path);
  if (attr->nlink > 1) {
    const auto [first, fresh] = first_paths_.try_emplace(name.ino, path);
    if (!fresh && ::linkat(root_, first->second.c_str(), directory, name.name.c_str(), 0) == 0) return {};
  }
  if (S_ISREG(attr->mode)) return copy_file(*attr, directory, name.name, path);
  if (S_ISLNK(attr->mode)) return copy_symlink(*attr, directory, name.name, path);
  return copy_special(*attr, directory, name.name, path);
}

Status Copier::cannot(const char* what, const std::string& path) {
  const int error = errno;
  if (ends_everything(error))
    return Error(errc_from_errno(error), fmt::format("the host's filesystem: {}: {}: {}; {} files with {} bytes were copied before", path,
                                                     what, std::strerror(error), report_.files, report_.bytes));
  report_.lose(path, fmt::format("{}: {}", what, std::strerror(error)));
  return {};
}

Status Copier::copy_directory(const fs::Attr& attr, int parent, const std::string& name, const std::string& path) {
  if (entered_.contains(attr.ino)) {
    report_.lose(path, "leads to a directory that is being copied, or has been, by another name");
    return {};
  }
  if (::mkdirat(parent, name.c_str(), 0700) != 0) return cannot("cannot be made", path);
  const Descriptor directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) {
    report_.lose(path, "cannot be opened: " + errno_text());
    return {};
  }
  ++report_.directories;
  entered_.insert(attr.ino);
  TRY(copy_entries(attr.ino, directory.get(), path));
  copy_attributes(fs_, attr, {parent, name, directory.get(), path}, report_);
  return {};
}

Status Copier::copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  Descriptor file(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return cannot("cannot be made", path);
  ++report_.files;
  if (::ftruncate(file.get(), static_cast<off_t>(attr.size)) != 0) TRY(cannot("its size", path));
  TRY(copy_data(attr, file.get(), path));
  copy_attributes(fs_, attr, {directory, name, file.get(), path}, report_);
  if (!file.close()) return cannot("cannot be written to its end", path);
  return {};
}

Status Copier::copy_data(const fs::Attr& attr, int file, const std::string& path) {
  std::vector<std::uint64_t> bad;
  for (std::uint64_t at = 0; at < attr.size;) {
    const auto data = call([&](fs::Operation& op) { return fs_.seek(op, attr.ino, at, fs::SeekKind::data); });
    if (data.fails_with(Errc::no_such_offset)) break;
    if (data.ok()) at = *data;
    const std::uint64_t length = std::min<std::uint64_t>(kPieceBytes - at % kPieceBytes, attr.size - at);
    if (!TRY(copy_piece(attr.ino, at, length, file, path, bad))) break;
    at += length;
  }
  tell_damage(path, bad);
  return {};
}

Result<bool> Copier::copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, const std::string& path,
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

Result<bool> Copier::write(int file, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = EIO;
      TRY(cannot(fmt::format("cannot be written from byte {} on", offset).c_str(), path));
      return false;
    }
    report_.bytes += static_cast<std::uint64_t>(n);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
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

Status Copier::copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  const auto target = call([&](fs::Operation& op) { return fs_.readlink(op, attr.ino); });
  if (!target.ok()) {
    report_.lose(path, target.error().message());
    return {};
  }
  if (::symlinkat(target->c_str(), directory, name.c_str()) != 0) return cannot("cannot be made", path);
  ++report_.symlinks;
  copy_attributes(fs_, attr, {directory, name, -1, path}, report_);
  return {};
}

Status Copier::copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  if (::mknodat(directory, name.c_str(), attr.mode, attr.rdev) != 0) return cannot("cannot be made", path);
  ++report_.others;
  copy_attributes(fs_, attr, {directory, name, -1, path}, report_);
  return {};
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
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", target, errno_text()));
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large for the host's limits is an error like others
  SalvageReport report;
  Copier copier(filesystem, root.get(), report);
  TRY(copier.copy_entries(kRootIno, root.get(), ""));
  // The source may be given up for the copy: it has to be on the medium.
  if (::syncfs(root.get()) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: the copies cannot all be written to its device: {}; copy to another one",
                                                     target, errno_text()));
  return report;
}

}  // namespace varve::tool
