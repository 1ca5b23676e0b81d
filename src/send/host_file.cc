#include "send/host_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <vector>

#include "base/errc.h"

namespace varve::send {

namespace {

timespec to_timespec(const Timestamp& time) { return {static_cast<time_t>(time.seconds), static_cast<long>(time.nanoseconds)}; }

std::string set_xattrs(int file, const Finish& finish, const std::string& apart) {
  const std::string way = way_to(file);
  auto former = names_of_xattrs(file);
  if (!former.ok() && finish.xattrs->empty()) return {};  // there are none where there is nothing to have them
  if (!former.ok()) return "listing attributes";
  for (const format::Xattr& one : *finish.xattrs) {
    former->erase(one.name);
    if (one.name != apart && ::setxattr(way.c_str(), one.name.c_str(), one.value.data(), one.value.size(), 0) != 0)
      return "setting the attribute " + one.name;
  }
  for (const std::string& name : *former)
    if (name != apart && ::removexattr(way.c_str(), name.c_str()) != 0) return "removing an attribute";
  return {};
}

// Where there are flags: those that are there now, and whether they can be changed.
struct Flags {
  bool are_known = false;
  unsigned before = 0, now = 0;
};

Flags take_locks(int file, const Finish& finish) {
  Flags flags;
  if (!S_ISREG(finish.mode) && !S_ISDIR(finish.mode)) return flags;
  flags.are_known = ::ioctl(file, FS_IOC_GETFLAGS, &flags.now) == 0;
  flags.before = flags.now;
  if (!flags.are_known || !(flags.now & kLocks)) return flags;
  unsigned unlocked = flags.now & ~kLocks;
  if (::ioctl(file, FS_IOC_SETFLAGS, &unlocked) == 0) flags.now = unlocked;
  return flags;
}

bool put_flags(int file, const Flags& flags, unsigned wanted) {
  unsigned all = flags_to_set(flags.now, wanted);
  if (all == flags.now) return true;
  if (flags.are_known) return ::ioctl(file, FS_IOC_SETFLAGS, &all) == 0;
  errno = EOPNOTSUPP;
  return false;
}

// The flags that it had; 0: it was not locked, or still is.
unsigned take_locks(const Descriptor& file) {
  unsigned flags = 0;
  if (!file || ::ioctl(file.get(), FS_IOC_GETFLAGS, &flags) != 0 || !(flags & kLocks)) return 0;
  const unsigned without = flags & ~kLocks;
  return ::ioctl(file.get(), FS_IOC_SETFLAGS, &without) == 0 ? flags : 0;
}

// The owner first: it takes privileges away. Then what an ACL says of the mode.
std::string set_all_but_flags(int file, const Finish& finish, const std::string& apart) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return "looking";
  const bool other_owner = status.st_uid != finish.uid || status.st_gid != finish.gid;
  if (other_owner && ::fchownat(file, "", finish.uid, finish.gid, AT_EMPTY_PATH) != 0) return "setting the owner";
  if (finish.xattrs)
    if (std::string failed = set_xattrs(file, finish, apart); !failed.empty()) return failed;
  if (!S_ISLNK(finish.mode) && ::chmod(way_to(file).c_str(), finish.mode & 07777) != 0) return "setting the mode";
  const timespec times[] = {to_timespec(finish.atime), to_timespec(finish.mtime)};
  return ::utimensat(file, "", times, AT_EMPTY_PATH) == 0 ? "" : "setting times";
}

int open_piece(int directory, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
}

}  // namespace

// The kernel takes no path of PATH_MAX bytes or more, but there are such files.
int open_below(int directory, const std::string& path, int flags, mode_t mode) {
  constexpr std::size_t kMost = PATH_MAX - 1;
  Descriptor above;
  std::size_t from = 0;
  const auto base = [&] { return above ? above.get() : directory; };
  while (path.size() - from > kMost) {
    const std::size_t slash = path.rfind('/', from + kMost);
    if (slash == std::string::npos || slash <= from) return errno = ENAMETOOLONG, -1;
    Descriptor next(open_piece(base(), path.substr(from, slash - from), O_PATH | O_DIRECTORY, 0));
    if (!next) return -1;
    above = std::move(next);
    from = slash + 1;
  }
  return open_piece(base(), path.substr(from), flags, mode);
}

// First it is only named: whatever others put there after the look, what was looked at is opened.
int open_content(int directory, const std::string& name, int flags) {
  const Descriptor named(open_below(directory, name, O_PATH));
  struct stat status {};
  if (!named || ::fstat(named.get(), &status) != 0) return -1;
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return ::open(way_to(named.get()).c_str(), flags | O_NONBLOCK | O_CLOEXEC);
  errno = ENXIO;
  return -1;
}

std::string below(const std::string& directory, const std::string& name) { return (directory == "/" ? "" : directory) + "/" + name; }

std::string parent_of(const std::string& path) { return path.rfind('/') == 0 ? "/" : path.substr(0, path.rfind('/')); }

std::string relative(const std::string& path) { return path == "/" ? "." : path.substr(1); }

Spot spot_of(int root, const std::string& path) {
  if (path == "/") return {Descriptor(open_below(root, ".", O_RDONLY | O_DIRECTORY)), "."};
  return {Descriptor(open_below(root, relative(parent_of(path)), O_RDONLY | O_DIRECTORY)), path.substr(path.rfind('/') + 1)};
}

// The name may be one that is to come, or one of a device, which is not opened.
bool unlock(int directory, const std::string& name) {
  const int why = errno;
  const bool was_locked = take_locks(Descriptor(open_content(directory, name, O_RDONLY))) != 0;
  errno = why;
  return was_locked;
}

// By a descriptor of its own: the other may only name it (O_PATH).
Unlocked::Unlocked(int directory, const std::string& name)
    : file_(open_content(directory, name, O_RDONLY)), flags_(take_locks(file_)) {}

Unlocked::~Unlocked() {
  const int why = errno;
  if (flags_) (void)::ioctl(file_.get(), FS_IOC_SETFLAGS, &flags_);
  errno = why;
}

Result<std::set<std::string>> names_of_xattrs(int file) {
  std::vector<char> names(64u << 10);
  const ssize_t length = ::listxattr(way_to(file).c_str(), names.data(), names.size());
  if (length < 0) return errc_from_errno(errno);
  std::set<std::string> found;
  for (ssize_t at = 0; at < length; at += static_cast<ssize_t>(std::strlen(names.data() + at)) + 1) found.emplace(names.data() + at);
  return found;
}

Result<std::map<std::string, format::Bytes>> xattrs_of(int file) {
  std::map<std::string, format::Bytes> all;
  for (const std::string& name : TRY(names_of_xattrs(file))) {
    format::Bytes value(64u << 10);
    const ssize_t length = ::getxattr(way_to(file).c_str(), name.c_str(), value.data(), value.size());
    if (length < 0) return errc_from_errno(errno);
    value.resize(static_cast<std::size_t>(length));
    all.emplace(name, std::move(value));
  }
  return all;
}

// Closing one of several descriptors does that, and costs less than a sync.
bool hand_over(int file) {
  Descriptor other(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  return other && other.close();
}

std::string set_attributes(int file, const Finish& finish, const std::string& apart) {
  const Flags flags = take_locks(file, finish);
  std::string failed = set_all_but_flags(file, finish, apart);
  if (failed.empty()) return put_flags(file, flags, finish.flags) ? "" : "setting flags";
  const int why = errno;
  (void)put_flags(file, flags, flags.before);
  errno = why;
  return failed;
}

}  // namespace varve::send
