#include "io/exclusive_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/errc.h"
#include "io/device_facts.h"
#include "io/holders.h"
#include "io/locality.h"
#include "io/stacking.h"

namespace varve::io {

namespace {

Error in_use(const struct stat& status, const std::string& path, bool names_holder) {
  const std::string user = user_of(status);
  if (user == "swap") return Error(Errc::in_use, fmt::format("{} is in use as swap: swapoff it first", path));
  if (!user.empty()) return Error(Errc::in_use, fmt::format("{} is mounted at {}: unmount it first", path, user));
  if (const auto holders = names_holder ? holders_of(status) : std::vector<Holder>(); !holders.empty()) {
    const Holder& first = holders.front();
    const std::string end = first.directory.empty() ? "stop that first" : fmt::format("`varve umount --pid {}` ends it", first.pid);
    return Error(Errc::in_use, fmt::format("{} is in use by {}: {}", path, describe(first), end));
  }
  return Error(Errc::in_use, fmt::format("{} is in use by another program (a mount that is ending, a Varve tool, "
                                         "RAID or LVM): stop that first",
                                         path));
}

Status lock(int fd, const struct stat& status, const std::string& path, bool writable, bool names_holder) {
  int result;
  if (S_ISBLK(status.st_mode)) {
    struct flock whole {};
    whole.l_type = static_cast<short>(writable ? F_WRLCK : F_RDLCK);
    whole.l_whence = SEEK_SET;
    result = ::fcntl(fd, F_OFD_SETLK, &whole);
  } else {
    result = ::flock(fd, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB);
  }
  if (result == 0) return {};
  if (errno == EWOULDBLOCK || errno == EACCES) return in_use(status, path, names_holder);
  return Error(Errc::unsupported, fmt::format("{}: cannot be locked against a second use ({}): move it to a filesystem "
                                              "with file locks",
                                              path, errno_text()));
}

// Varve's own lock on a block device, held by another program.
bool has_record_lock(int fd, bool writable) {
  struct flock whole {};
  whole.l_type = static_cast<short>(writable ? F_WRLCK : F_RDLCK);
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

enum class Use { none, some, unknown };

// Of another block device, by a mount, swap, RAID or another Varve process.
Use use_of(const Layer& device, bool writable) {
  struct stat status {};
  if (::stat(device.name.c_str(), &status) != 0 || !S_ISBLK(status.st_mode) || status.st_rdev != device.device) return Use::unknown;
  const int fd = ::open(device.name.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  if (fd >= 0) {
    const bool locked = has_record_lock(fd, writable);
    ::close(fd);
    return locked ? Use::some : Use::none;
  }
  if (errno == EBUSY || !user_of(status).empty()) return Use::some;
  return Use::unknown;
}

std::string how_used(const Layer& device) {
  struct stat status {};
  const std::string user = ::stat(device.name.c_str(), &status) == 0 ? user_of(status) : "";
  if (user.empty()) return "";
  return user == "swap" ? " (as swap)" : fmt::format(" (mounted at {})", user);
}

// By the kernel's list, which needs no path to the file. Locks of processes that this one may not see are missing in it.
bool is_listed_as_locked(const Layer& file, bool writable) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    char kind[16], mode[16], access[16];
    long pid = 0;
    unsigned major_number = 0, minor_number = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*d: %15s %15s %15s %ld %x:%x:%lu", kind, mode, access, &pid, &major_number, &minor_number,
                    &inode) != 7)
      continue;
    if (std::strcmp(kind, "FLOCK") != 0 || (!writable && std::strcmp(access, "READ") == 0)) continue;
    if (makedev(major_number, minor_number) == file.device && inode == file.inode) return true;
  }
  return false;
}

// Only a probe, as for the device's own claim. A file that cannot be opened by its name here says nothing.
bool is_locked(const Layer& file, bool writable) {
  if (is_listed_as_locked(file, writable)) return true;
  const int fd = ::open(file.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat status {};
  const bool same = ::fstat(fd, &status) == 0 && status.st_dev == file.device && status.st_ino == file.inode;
  const bool locked = same && ::flock(fd, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

// Below a partition or a mapped device stand disks, which the kernel itself gives to one at a time.
Status check_below(const Stack& mine, bool writable) {
  const std::string& path = mine.layers.front().name;
  for (auto layer = mine.layers.begin() + 1; layer != mine.layers.end(); ++layer) {
    if (layer->is_block_device() || !is_locked(*layer, writable)) continue;
    return Error(Errc::in_use, fmt::format("{} stands on the image {}, which is in use by itself (mounted, or by a Varve tool): stop "
                                           "that first", path, layer->name));
  }
  return {};
}

// Loop devices that stand on the same bytes. Only the only one is sure.
Result<Certainty> check_beside(const Stack& mine, bool writable) {
  const std::string& path = mine.layers.front().name;
  Certainty certainty = Certainty::alone;
  for (const Stack& theirs : loop_stacks()) {
    const Layer& loop = theirs.layers.front();
    const bool is_mine = std::ranges::any_of(mine.layers, [&](const Layer& layer) { return layer.same_object(loop); });
    if (is_mine) continue;
    if (!theirs.complete) certainty = Certainty::unsure;
    if (!mine.meets(theirs)) continue;
    certainty = Certainty::unsure;
    if (use_of(loop, writable) == Use::some)
      return Error(Errc::in_use, fmt::format("{} is in use through the loop device {}{}: stop that first", path, loop.name,
                                             how_used(loop)));
  }
  return certainty;
}

}  // namespace

Result<KernelClaim> KernelClaim::take(const std::string& path, bool is_block_device, bool names_holder) {
  const int fd = is_block_device ? ::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC) : -1;
  if (!is_block_device || fd >= 0) return KernelClaim(fd);
  const int error = errno;
  struct stat status {};
  if (error == EBUSY && ::stat(path.c_str(), &status) == 0) return in_use(status, path, names_holder);
  return Error(errc_from_errno(error), fmt::format("{}: cannot be claimed: {}", path, std::strerror(error)));
}

KernelClaim::~KernelClaim() {
  if (fd_ >= 0) ::close(fd_);
}

Status check_unclaimed(const struct stat& status, const std::string& path, bool names_holder) {
  const auto claim = KernelClaim::take(path, S_ISBLK(status.st_mode), names_holder);
  if (claim.fails_with(Errc::in_use)) return claim.error();
  return {};  // whatever else is wrong, opening it in earnest will say
}

Result<Certainty> lock_exclusively(int fd, const struct stat& status, const std::string& path, bool writable, bool names_holder) {
  TRY(lock(fd, status, path, writable, names_holder));
  const Stack stack = stack_of(status, path);
  TRY(check_below(stack, writable));
  const Certainty certainty = TRY(check_beside(stack, writable));
  return is_local(stack) ? certainty : Certainty::unsure;
}

}  // namespace varve::io
