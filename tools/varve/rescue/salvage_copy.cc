#include "varve/rescue/salvage_copy.h"

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
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/descriptor.h"
#include "varve/rescue/salvage_attributes.h"
#include "varve/rescue/salvage_data.h"

namespace varve::tool {

namespace {

class Copier {
 public:
  Copier(fs::Filesystem& filesystem, int root, SalvageReport& report, const SalvageAdvance& advance)
      : fs_(filesystem), root_(root), report_(report), advance_(advance), data_(filesystem, report, advance) {}

  Status copy_all();

 private:
  struct Name {
    std::string name;
    Ino ino;
  };

  // A directory on the way to the one that is being copied. Only that one is open: there may be more levels than a program may have
  // open files, and than its stack takes.
  struct Level {
    std::optional<fs::Attr> attr;
    std::size_t above;  // length of the path of the directory that it is in
    dev_t device;       // of the copy
    ino_t number;
    std::vector<Name> names;
    std::size_t next = 0;
  };

  template <class Function>
  auto call(Function&& function) {
    fs::Operation operation(fs_.operations(), fs::Caller{});
    return fs::block_on(operation, [&] { return function(operation); });
  }

  std::string path() const { return path_.empty() ? "." : path_; }
  Status enter(Ino ino, std::optional<fs::Attr> attr, std::size_t above, Descriptor made);
  Status leave();
  Result<Descriptor> open_above();
  std::vector<Name> list(Ino ino, const std::string& path);
  Status copy(const Name& name, int directory, std::size_t above);
  Status copy_directory(const fs::Attr& attr, int parent, const std::string& name, std::size_t above);
  Status copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  Status copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);
  Status copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path);

  fs::Filesystem& fs_;
  const int root_;
  SalvageReport& report_;
  const SalvageAdvance& advance_;
  SalvagedData data_;
  std::vector<Level> levels_;
  std::string path_;      // of what is being copied, from the root
  Descriptor directory_;  // of the last level
  std::unordered_map<Ino, std::string> first_paths_;  // of files with several names
  std::unordered_set<Ino> entered_;  // directories; names that no repair has judged may lead back to one
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

Status Copier::copy_all() {
  const auto attr = call([&](fs::Operation& op) { return fs_.getattr(op, kRootIno); });
  if (!attr.ok()) report_.lose(path(), attr.error().message());
  TRY(enter(kRootIno, attr.ok() ? std::optional(*attr) : std::nullopt, 0, Descriptor(::fcntl(root_, F_DUPFD_CLOEXEC, 0))));
  while (!levels_.empty()) {
    TRY(advance_(report_));
    Level& level = levels_.back();
    if (level.next == level.names.size()) {
      TRY(leave());
      continue;
    }
    const Name name = std::move(level.names[level.next++]);
    const std::size_t depth = levels_.size(), above = path_.size();
    path_ += (path_.empty() ? "" : "/") + name.name;
    TRY(copy(name, directory_.get(), above));
    if (levels_.size() == depth) path_.resize(above);
  }
  return {};
}

Status Copier::enter(Ino ino, std::optional<fs::Attr> attr, std::size_t above, Descriptor made) {
  struct stat status {};
  if (::fstat(made.get(), &status) != 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", path(), errno_text()));
  levels_.push_back({attr, above, status.st_dev, status.st_ino, list(ino, path())});
  entered_.insert(ino);
  directory_ = std::move(made);
  return {};
}

Status Copier::leave() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  Descriptor parent = levels_.empty() ? Descriptor() : TRY(open_above());  // its own mode may not allow that any more
  const std::string self = ".";
  if (level.attr) copy_attributes(fs_, *level.attr, {directory_.get(), self, directory_.get(), path()}, report_);
  directory_ = std::move(parent);
  path_.resize(level.above);
  return {};
}

// Nothing is to be made elsewhere should somebody have moved the copy meanwhile.
Result<Descriptor> Copier::open_above() {
  Descriptor parent(::openat(directory_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!parent || ::fstat(parent.get(), &status) != 0)
    return Error(errc_from_errno(errno), fmt::format("the directory above the copy of {}: {}", path(), errno_text()));
  if (status.st_dev == levels_.back().device && status.st_ino == levels_.back().number) return parent;
  return Error(Errc::io, fmt::format("the copy of {} was moved by another program", path()));
}

Status Copier::copy(const Name& name, int directory, std::size_t above) {
  const std::string& path = path_;
  const auto attr = call([&](fs::Operation& op) { return fs_.getattr(op, name.ino); });
  if (!attr.ok()) {
    report_.lose(path, attr.error().message());
    return {};
  }
  if (S_ISDIR(attr->mode)) return copy_directory(*attr, directory, name.name, above);
  if (attr->nlink > 1) {
    const auto [first, fresh] = first_paths_.try_emplace(name.ino, path);
    if (!fresh && ::linkat(root_, first->second.c_str(), directory, name.name.c_str(), 0) == 0) return {};
  }
  if (S_ISREG(attr->mode)) return copy_file(*attr, directory, name.name, path);
  if (S_ISLNK(attr->mode)) return copy_symlink(*attr, directory, name.name, path);
  return copy_special(*attr, directory, name.name, path);
}

Status Copier::copy_directory(const fs::Attr& attr, int parent, const std::string& name, std::size_t above) {
  if (entered_.contains(attr.ino)) {
    report_.lose(path_, "leads to a directory that is being copied, or has been, by another name");
    return {};
  }
  if (::mkdirat(parent, name.c_str(), 0700) != 0) return host_refuses("cannot be made", path_, report_);
  Descriptor made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made) {
    report_.lose(path_, "cannot be opened: " + errno_text());
    return {};
  }
  ++report_.directories;
  return enter(attr.ino, attr, above, std::move(made));
}

Status Copier::copy_file(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  Descriptor file(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return host_refuses("cannot be made", path, report_);
  ++report_.files;
  if (::ftruncate(file.get(), static_cast<off_t>(attr.size)) != 0) TRY(host_refuses("its size", path, report_));
  TRY(data_.copy(attr, file.get(), path));
  copy_attributes(fs_, attr, {directory, name, file.get(), path}, report_);
  if (!file.close()) return host_refuses("cannot be written to its end", path, report_);
  return {};
}

Status Copier::copy_symlink(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  const auto target = call([&](fs::Operation& op) { return fs_.readlink(op, attr.ino); });
  if (!target.ok()) {
    report_.lose(path, target.error().message());
    return {};
  }
  if (::symlinkat(target->c_str(), directory, name.c_str()) != 0) return host_refuses("cannot be made", path, report_);
  ++report_.symlinks;
  copy_attributes(fs_, attr, {directory, name, -1, path}, report_);
  return {};
}

Status Copier::copy_special(const fs::Attr& attr, int directory, const std::string& name, const std::string& path) {
  if (::mknodat(directory, name.c_str(), attr.mode, attr.rdev) != 0) return host_refuses("cannot be made", path, report_);
  ++report_.others;
  copy_attributes(fs_, attr, {directory, name, -1, path}, report_);
  return {};
}

// Open to nobody else until the root's own mode is there.
Status prepare(const std::string& target) {
  if (::mkdir(target.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return Error(errc_from_errno(errno), fmt::format("{}: {}", target, errno_text()));
  std::error_code error;
  if (!std::filesystem::is_directory(target, error)) return Error(Errc::not_directory, fmt::format("{}: not a directory", target));
  const bool empty = std::filesystem::is_empty(target, error);
  if (error) return Error(errc_from_errno(error.value()), fmt::format("{}: {}", target, error.message()));
  if (!empty) return Error(Errc::not_empty, fmt::format("{}: not empty; give a new directory", target));
  return {};
}

}  // namespace

void SalvageReport::lose(std::string path, std::string what) {
  if (++loss_count <= kMostLosses) losses.push_back({std::move(path), std::move(what)});
}

Result<SalvageReport> salvage_copy(fs::Filesystem& filesystem, const std::string& target, const SalvageAdvance& advance) {
  TRY(prepare(target));
  const Descriptor root(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", target, errno_text()));
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large for the host's limits is an error like others
  SalvageReport report;
  Copier copier(filesystem, root.get(), report, advance);
  TRY(copier.copy_all());
  // The source may be given up for the copy: it has to be on the medium.
  if (::syncfs(root.get()) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: the copies cannot all be written to its device: {}; copy to another one",
                                                     target, errno_text()));
  return report;
}

}  // namespace varve::tool
