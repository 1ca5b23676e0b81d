#include "daemon/mount_point.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/logging.h"
#include "control/mount_table.h"
#include "daemon/background.h"
#include "daemon/mount_right.h"
#include "daemon/umount_table.h"

extern char** environ;

namespace varve::daemon {

namespace {

// libfuse tells its reasons to a log only: they are kept for our own message.
thread_local std::string library_messages;

void keep_message(fuse_log_level, const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  if (!library_messages.empty()) library_messages += "; ";
  library_messages += line;
}

constexpr const char* kNoRight = "without the capability CAP_SYS_ADMIN: give it to the container";

Error mount_error(const std::string& directory) {
  // As a user fusermount3 has said the rest on standard error.
  const bool by_helper = ::geteuid() != 0;
  std::string why = library_messages;
  if (!by_helper && !has_right_to_mount())
    why += fmt::format("{}root may not mount here, {}", why.empty() ? "" : "; ", kNoRight);
  if (why.empty()) why = by_helper ? "fusermount3 refused, and says why above" : "the kernel refused";
  if (const auto there = control::find_mount(directory); there && there->type.starts_with("fuse"))
    why += fmt::format("; {} is mounted there already: unmount it first, or take another directory", there->source);
  else if (by_helper && ::access(directory.c_str(), W_OK) != 0)
    why += "; you may only mount on a directory that you may write to";
  if (::access("/dev/fuse", F_OK) != 0)
    why += "; /dev/fuse is not there (module fuse loaded? permitted in this container?)";
  else if (::access("/dev/fuse", R_OK | W_OK) != 0)
    why += "; you may not open /dev/fuse: its usual mode is 666 (chmod 666 /dev/fuse as root)";
  return Error(Errc::not_permitted, fmt::format("cannot mount at {}: {}", directory, why));
}

// A comma in a path would end the option.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// max_read: what the kernel asks for at once is bounded by its pages as well, but they are not of one size everywhere.
std::string mount_options(const MountRequest& request, const MountOptions& options) {
  const bool is_root = ::geteuid() == 0;
  std::string text = fmt::format("default_permissions,max_read={},subtype=varve,fsname={}", fuse::kMaxWrite, escaped(request.source));
  if (request.is_block_device && is_root) text += fmt::format(",blkdev,blksize={}", kBlockSize);
  if (options.allow_other) text += ",allow_other";
  if (request.read_only) text += ",ro";
  if (options.fs.atime == fs::Atime::never) text += ",noatime";  // for findmnt: times are the daemon's business
  // As for any filesystem that root mounts, but for what another user may have put into it: there the library's own defaults stay,
  // nosuid and nodev, unless root asks for more.
  if (is_root && request.is_roots_alone) text += ",dev,suid";
  for (const std::string& flag : options.kernel_flags) text += "," + flag;
  return text;
}

Status clear_stale(const std::string& directory) {
  const auto mounted = control::find_mount(directory);
  if (!mounted || !mounted->is_varve())
    return Error(Errc::in_use, fmt::format("{}: a dead mount of {} is in the way: unmount it first", directory,
                                           mounted ? mounted->type : "unknown type"));
  TRY(clear_dead(directory));
  log_warn("{}: cleared what a daemon of {} that did not end properly had left there", directory, mounted->source);
  return {};
}

// Until the process that writes there has ended; without the line's end.
std::string read_all(int fd) {
  std::string text;
  while (read_some(fd, text)) {
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// With its standard error at `err`. An errno, or 0.
int spawn(const std::vector<const char*>& words, int err, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  const int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, const_cast<char**>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// What it says is why it failed.
Status run(std::vector<const char*> words) {
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error(errc_from_errno(errno), "cannot make a pipe");
  pid_t pid = 0;
  const int error = spawn(words, ends[1], pid);
  ::close(ends[1]);
  const std::string said = error ? "" : read_all(ends[0]);
  ::close(ends[0]);
  if (error) return Error(errc_from_errno(error), fmt::format("{}: {}", words[0], std::strerror(error)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const bool is_busy = said.find(std::strerror(EBUSY)) != std::string::npos;  // nobody sets a locale here, nor does it
  return Error(is_busy ? Errc::busy : Errc::not_permitted, said.empty() ? fmt::format("{} failed", words[0]) : said);
}

}  // namespace

// The library knows no such flag.
Status forbid_symbolic_links(const std::string& directory) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSYMFOLLOW;
  if (::mount_setattr(AT_FDCWD, directory.c_str(), 0, &attributes, sizeof attributes) == 0) return {};
  const bool is_old = errno == EINVAL || errno == ENOSYS;
  return Error(errc_from_errno(errno),
               fmt::format("option nosymfollow: {}", is_old ? "this kernel cannot do it: Linux 5.14 can" : errno_text()));
}

Result<std::string> prepare_mount_point(const std::string& directory) {
  const std::string path = control::resolve_mount_point(directory);
  struct stat status {};
  const auto look = [&] {
    if (path.empty()) return ENOENT;
    return control::is_dead(path) ? ENOTCONN : ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  };
  int error = look();
  if (error == ENOTCONN) {
    TRY(clear_stale(path));
    error = look();
  }
  if (error)
    return Error(errc_from_errno(error),
                 fmt::format("mount point {}: {}", directory,
                             error == ENOENT ? "no such file or directory: make it first" : std::strerror(error)));
  if (!S_ISDIR(status.st_mode))
    return Error(Errc::not_directory, fmt::format("mount point {}: not a directory", directory));
  // A second one would hide the first, of which nothing would be heard any more.
  if (const auto there = control::find_mount(path); there && there->is_varve() && there->is_whole())
    return Error(Errc::in_use, fmt::format("mount point {}: {} is mounted there: unmount it first, or take another directory", directory,
                                           there->source));
  return path;
}

Result<std::unique_ptr<MountPoint>> MountPoint::attach(const MountRequest& request, const MountOptions& options) {
  if (options.nosymfollow && ::geteuid() != 0) return Error(Errc::not_permitted, "option nosymfollow: only root can mount so");
  library_messages.clear();
  ::fuse_set_log_func(keep_message);
  const std::string text = mount_options(request, options);
  fuse_args arguments{};
  if (::fuse_opt_add_arg(&arguments, "varve") != 0 || ::fuse_opt_add_arg(&arguments, "-o") != 0 ||
      ::fuse_opt_add_arg(&arguments, text.c_str()) != 0)
    return Errc::no_memory;
  // The library only mounts and unmounts: messages are ours. It insists on a table of operations.
  const fuse_lowlevel_ops none{};
  fuse_session* session = ::fuse_session_new(&arguments, &none, sizeof none, nullptr);
  ::fuse_opt_free_args(&arguments);
  if (!session) return mount_error(request.directory);
  std::unique_ptr<MountPoint> mounted(new MountPoint(session, request.directory));
  if (::fuse_session_mount(session, request.directory.c_str()) != 0) return mount_error(request.directory);
  const auto found = control::find_mount(request.directory);
  mounted->device_ = found ? found->device : "";
  if (options.nosymfollow) TRY(forbid_symbolic_links(request.directory));  // before the filesystem answers anybody
  enter_umount_helper(request.source, request.directory);
  return mounted;
}

MountPoint::~MountPoint() { close(); }

void MountPoint::close() {
  if (!session_) return;
  // Before it detaches: nobody would answer any more what the kernel asks then. The library's own unmount would take whatever
  // is mounted there now.
  ::fuse_session_destroy(session_);
  session_ = nullptr;
  detach_dead();
  if (device_ && !control::find_mount(directory_)) drop_umount_helper(directory_);  // what has been mounted there since has its own
}

int MountPoint::fd() const { return ::fuse_session_fd(session_); }

bool MountPoint::has_claimed() const {
  const auto mounted = control::find_mount(directory_);
  return mounted && device_ && mounted->device == *device_ && mounted->is_fuseblk();
}

bool MountPoint::is_there() const {
  if (!device_) return false;
  if (device_->empty()) return control::is_dead(directory_);  // what is alive may be anybody's
  const auto top = control::find_mount(directory_);
  return top && top->device == *device_;
}

bool MountPoint::is_connected() const {
  if (!session_) return false;
  pollfd connection{fd(), POLLIN, 0};
  return ::poll(&connection, 1, 0) == 0 || !(connection.revents & POLLERR);
}

std::optional<CacheLimit> MountPoint::tune() const {
  const auto mounted = control::find_mount(directory_);
  if (::geteuid() != 0 || !mounted) return {};
  const std::string bdi = fmt::format("/sys/class/bdi/{}{}/", mounted->device, mounted->is_fuseblk() ? "-fuseblk" : "");
  write_setting(bdi + "read_ahead_kb", "1024");
  return CacheLimit(bdi);
}

Status MountPoint::detach(Detach how) const {
  if (!is_there()) return Error(Errc::not_found, fmt::format("{}: not mounted, or under something else", directory_));
  return daemon::detach(directory_, how);
}

// When the connection has ended the device number is free, and may be that of what has been mounted there since; but that is
// alive. In this order: what is found while the connection stands is ours, and may not answer any more.
void MountPoint::detach_dead() const {
  if (is_there() && (is_connected() || control::is_dead(directory_))) (void)daemon::detach(directory_, Detach::now);
}

Status clear_dead(const std::string& directory) {
  TRY(detach(directory, Detach::now));
  drop_umount_helper(directory);
  return {};
}

Status detach(const std::string& directory, Detach how) {
  if (::geteuid() != 0) {
    std::vector<const char*> words = {"fusermount3", "-u"};
    if (how == Detach::now) words.push_back("-z");
    words.insert(words.end(), {"--", directory.c_str()});
    const Status done = run(words);
    if (!done.fails_with(Errc::busy)) return done;
    return Error(Errc::busy, done.error().message() + ": something on it is still open (`fuser -vm` shows what; -l detaches it now)");
  }
  if (::umount2(directory.c_str(), UMOUNT_NOFOLLOW | (how == Detach::now ? MNT_DETACH : 0)) == 0) return {};
  const int error = errno;
  const char* const why = error == EBUSY ? "in use: something on it is still open (`fuser -vm` shows what; -l detaches it now)"
                                              : std::strerror(error);
  if (error == EPERM && !has_right_to_mount())
    return Error(Errc::not_permitted, fmt::format("{}: root may not unmount here, {}", directory, kNoRight));
  return Error(errc_from_errno(error), fmt::format("{}: {}", directory, why));
}

}  // namespace varve::daemon
