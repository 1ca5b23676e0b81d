#include "send/receiver.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/errc.h"
#include "send/sender.h"

namespace varve::send {

namespace {

constexpr const char* kStaging = ".varve-receive";
constexpr unsigned kLocks = FS_IMMUTABLE_FL | FS_APPEND_FL;
constexpr unsigned kFlags = kLocks | FS_SYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL;  // that Varve keeps; others are the host's business

// Below a directory and through no symbolic link, whatever others do there meanwhile.
int open_below(int directory, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
}

// So that it can be changed. False: it could be before, or cannot be.
bool unlock(int directory, const std::string& name) {
  const Descriptor file(open_below(directory, name, O_RDONLY | O_NONBLOCK));
  unsigned flags = 0;
  if (!file || ::ioctl(file.get(), FS_IOC_GETFLAGS, &flags) != 0 || !(flags & kLocks)) return false;
  flags &= ~kLocks;
  return ::ioctl(file.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

// What is immutable in the base gets its flags at the end, as all that changes does.
template <class Change>
int unlocking(int directory, const std::string& name, Change&& change) {
  const int done = change();
  if (done >= 0 || errno != EPERM) return done;
  const bool file = unlock(directory, name), folder = unlock(directory, ".");
  if (file || folder) return change();
  errno = EPERM;
  return done;
}

std::string staged_name(Ino ino) { return fmt::format("{}", ino); }

timespec to_timespec(const Timestamp& time) { return {static_cast<time_t>(time.seconds), static_cast<long>(time.nanoseconds)}; }

// The file that is open, also one that is only named by its descriptor (O_PATH): symbolic links and devices have attributes, too.
std::string way_to(const Descriptor& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

Result<std::set<std::string>> names_of_xattrs(const std::string& way) {
  std::vector<char> names(64u << 10);
  const ssize_t length = ::listxattr(way.c_str(), names.data(), names.size());
  if (length < 0) return errc_from_errno(errno);
  std::set<std::string> found;
  for (ssize_t at = 0; at < length; at += static_cast<ssize_t>(std::strlen(names.data() + at)) + 1) found.emplace(names.data() + at);
  return found;
}

}  // namespace

Error Receiver::failed(const char* action, const std::string& path) const {
  const Errc code = errc_from_errno(errno);
  return {code, fmt::format("{}{}: {}: {}", directory_, path == "/" ? "" : path, action, errno_text())};
}

Result<Receiver> Receiver::open(const std::string& directory) {
  Descriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
  return Receiver(std::move(root), directory);
}

Status Receiver::prepare() {
  if (::mkdirat(root_.get(), kStaging, 0700) != 0) {
    if (errno != EEXIST) return failed("making a directory", std::string("/") + kStaging);
    return Error(Errc::exists, fmt::format("{}/{}: left by a receive that was interrupted: begin anew", directory_, kStaging));
  }
  staging_ = Descriptor(open_below(root_.get(), kStaging, O_RDONLY | O_DIRECTORY));
  return staging_ ? Status() : Status(failed("opening", std::string("/") + kStaging));
}

// When the first attributes come nothing is in the staging directory any more.
Status Receiver::tidy() {
  if (std::exchange(attached_, true)) return {};
  staging_ = Descriptor();
  if (::unlinkat(root_.get(), kStaging, AT_REMOVEDIR) == 0) return {};
  if (errno == ENOTEMPTY) return Error(Errc::corrupt, "the stream is damaged: it makes files without giving them a name");
  return failed("removing", std::string("/") + kStaging);
}

Result<Received> Receiver::receive(StreamReader& stream) {
  TRY(prepare());
  for (std::size_t kind = 0;;) {
    const auto record = TRY(stream.next());
    if (!record) break;
    // The same path may lead elsewhere when the former names have gone, and when the new ones are there.
    if (std::exchange(kind, record->index()) != record->index()) parent_ = Descriptor();
    ++received_.records;
    TRY(std::visit([this](const auto& one) { return apply(one); }, *record));
  }
  open_ = Descriptor();
  if (!attached_) return Error(Errc::corrupt, "the stream is damaged: it has no attributes of the directory");
  return received_;
}

Result<Receiver::Place> Receiver::place_of(const std::string& path) {
  if (path == "/") return Place{root_.get(), "."};
  const std::size_t slash = path.rfind('/');
  const std::string parent = path.substr(0, slash), name = path.substr(slash + 1);
  if (parent.empty() && name == kStaging) return Error(Errc::corrupt, fmt::format("the stream is damaged: it wants to change {}", path));
  if (parent.empty()) return Place{root_.get(), name};
  if (parent != parent_path_ || !parent_) {
    parent_ = Descriptor(open_below(root_.get(), parent.substr(1), O_RDONLY | O_DIRECTORY));
    if (!parent_) return failed("opening", parent);
    parent_path_ = parent;
  }
  return Place{parent_.get(), name};
}

Status Receiver::apply(const Detach& detach) {
  const Place place = TRY(place_of(detach.path));
  const int done = unlocking(place.directory, place.name, [&] {
    if (!detach.stays) return ::unlinkat(place.directory, place.name.c_str(), detach.directory ? AT_REMOVEDIR : 0);
    return ::renameat2(place.directory, place.name.c_str(), staging_.get(), staged_name(detach.ino).c_str(), RENAME_NOREPLACE);
  });
  return done == 0 ? Status() : Status(failed(detach.stays ? "moving away" : "removing", detach.path));
}

Status Receiver::apply(const Make& make) {
  const std::string name = staged_name(make.ino);
  const mode_t type = make.mode & S_IFMT;
  int failure = 0;
  if (!staging_) return Error(Errc::corrupt, "the stream is damaged: its records are in another order");
  if (type == S_IFDIR) failure = ::mkdirat(staging_.get(), name.c_str(), 0700);
  else if (type == S_IFLNK) failure = ::symlinkat(make.target.c_str(), staging_.get(), name.c_str());
  else failure = ::mknodat(staging_.get(), name.c_str(), type | 0600, make.rdev);
  return failure == 0 ? Status() : Status(failed("making", fmt::format("/{}/{}", kStaging, name)));
}

Status Receiver::apply(const Attach& attach) {
  if (!staging_) return Error(Errc::corrupt, "the stream is damaged: its records are in another order");
  const std::string staged = staged_name(attach.ino);
  if (!attach.source.empty()) {
    const Place source = TRY(place_of(attach.source));
    const Descriptor from(::fcntl(source.directory, F_DUPFD_CLOEXEC, 0));  // place_of() keeps one directory open
    const Place place = TRY(place_of(attach.path));
    unlock(from.get(), source.name);
    const int done = unlocking(place.directory, ".", [&] {
      return ::linkat(from.get(), source.name.c_str(), place.directory, place.name.c_str(), 0);
    });
    return done == 0 ? Status() : Status(failed("linking", attach.path));
  }
  const Place place = TRY(place_of(attach.path));
  const int done = unlocking(place.directory, ".", [&] {
    if (!attach.last) return ::linkat(staging_.get(), staged.c_str(), place.directory, place.name.c_str(), 0);
    return ::renameat2(staging_.get(), staged.c_str(), place.directory, place.name.c_str(), RENAME_NOREPLACE);
  });
  return done == 0 ? Status() : Status(failed("naming", attach.path));
}

Status Receiver::apply(const Open& open) {
  const Place place = TRY(place_of(open.path));
  open_path_ = open.path;
  open_ = Descriptor(unlocking(place.directory, place.name, [&] { return open_below(place.directory, place.name, O_RDWR | O_NONBLOCK); }));
  if (!open_) return failed("opening", open.path);
  struct stat status {};
  if (::fstat(open_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error(Errc::corrupt, fmt::format("{}{}: the stream takes it for a file", directory_, open.path));
  return ::ftruncate(open_.get(), static_cast<off_t>(open.size)) == 0 ? Status() : Status(failed("setting its size", open.path));
}

Status Receiver::apply(const Data& data) {
  if (!open_) return Error(Errc::corrupt, "the stream is damaged: data of no file");
  received_.data_bytes += data.bytes.size();
  for (std::size_t at = 0; at < data.bytes.size();) {
    const ssize_t wrote = ::pwrite(open_.get(), data.bytes.data() + at, data.bytes.size() - at, static_cast<off_t>(data.offset + at));
    if (wrote <= 0) return failed("writing", open_path_);
    at += static_cast<std::size_t>(wrote);
  }
  return {};
}

Status Receiver::apply(const Range& range) {
  if (!open_) return Error(Errc::corrupt, "the stream is damaged: a hole in no file");
  const int mode = FALLOC_FL_KEEP_SIZE | (range.reserved ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
  if (::fallocate(open_.get(), mode, static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) == 0) return {};
  return failed("clearing a part", open_path_);
}

// All of it by one descriptor: nobody can put another file there meanwhile. Flags last, since an immutable file can have nothing else set.
Status Receiver::apply(const Finish& finish) {
  TRY(tidy());
  open_ = Descriptor();
  const Place place = TRY(place_of(finish.path));
  const Descriptor file(open_below(place.directory, place.name, O_PATH));
  if (!file) return failed("opening", finish.path);
  const bool has_flags = S_ISREG(finish.mode) || S_ISDIR(finish.mode);
  if (has_flags) unlock(place.directory, place.name);
  TRY(set_attributes(finish, file));
  const timespec times[] = {to_timespec(finish.atime), to_timespec(finish.mtime)};
  if (::utimensat(file.get(), "", times, AT_EMPTY_PATH) != 0) return failed("setting times", finish.path);
  return has_flags ? set_flags(finish, place) : Status();
}

// The owner first: it takes privileges away. Then what an ACL says of the mode.
Status Receiver::set_attributes(const Finish& finish, const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("looking", finish.path);
  if ((status.st_mode & S_IFMT) != (finish.mode & S_IFMT))
    return Error(Errc::corrupt, fmt::format("{}{}: the stream takes it for something else", directory_, finish.path));
  const bool other_owner = status.st_uid != finish.uid || status.st_gid != finish.gid;
  if (other_owner && ::fchownat(file.get(), "", finish.uid, finish.gid, AT_EMPTY_PATH) != 0)
    return failed("setting the owner", finish.path);
  if (finish.xattrs) TRY(set_xattrs(finish, file));
  if (!S_ISLNK(finish.mode) && ::chmod(way_to(file).c_str(), finish.mode & 07777) != 0) return failed("setting the mode", finish.path);
  return {};
}

Status Receiver::set_xattrs(const Finish& finish, const Descriptor& file) {
  const std::string way = way_to(file);
  auto former = names_of_xattrs(way);
  if (!former.ok() && finish.xattrs->empty()) return {};  // there are none where there is nothing to have them
  if (!former.ok()) return failed("listing attributes", finish.path);
  for (const format::Xattr& one : *finish.xattrs) {
    former->erase(one.name);
    if (::setxattr(way.c_str(), one.name.c_str(), one.value.data(), one.value.size(), 0) != 0)
      return failed(("setting the attribute " + one.name).c_str(), finish.path);
  }
  for (const std::string& name : *former)
    if (name != kReceivedAttribute && ::removexattr(way.c_str(), name.c_str()) != 0) return failed("removing an attribute", finish.path);
  return {};
}

Status Receiver::set_flags(const Finish& finish, const Place& place) {
  const Descriptor file(open_below(place.directory, place.name, O_RDONLY | O_NONBLOCK));
  if (!file) return failed("opening", finish.path);
  unsigned flags = 0;
  const bool has_flags = ::ioctl(file.get(), FS_IOC_GETFLAGS, &flags) == 0;
  if ((has_flags ? flags & kFlags : 0) == (finish.flags & kFlags)) return {};
  flags = (flags & ~kFlags) | (finish.flags & kFlags);
  return has_flags && ::ioctl(file.get(), FS_IOC_SETFLAGS, &flags) == 0 ? Status() : Status(failed("setting flags", finish.path));
}

}  // namespace varve::send
