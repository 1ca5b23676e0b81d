#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <thread>

#include "base/errc.h"
#include "checkpoint/superblocks.h"
#include "control/mount_table.h"
#include "control/place.h"
#include "daemon/log_output.h"
#include "daemon/mount_point.h"
#include "io/block_device.h"
#include "io/holders.h"
#include "io/stacking.h"
#include "remote/open_device.h"
#include "varve/command.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

constexpr auto kLook = std::chrono::milliseconds(10);
constexpr int kPatienceMs = 5000;  // then it says what it is waiting for
constexpr int kLooksAfterEnd = 100;  // an ended daemon's last I/O may hold the image for a moment
constexpr int kLooksInTheDark = 3000;  // any process may hold the image, and hold it for ever

// Only the name: an update may have replaced the file meanwhile, and then the link says so behind it.
std::string program_of(const std::string& process) {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error).filename().string();
  return name.substr(0, name.find(' '));
}

// What is asked of the daemon before it goes. Without `pidfd` only its lock on the image tells whether it has ended.
struct Daemon {
  std::string source;
  bool read_only = false;  // asked for at the mount: the image is left as it was
  std::string failure;     // why it has become read-only since
  std::string log;         // where its messages are
  std::string device;         // number of the mounted filesystem
  std::string snapshots_dir;  // where it shows snapshots
  int pid = 0;
  int pidfd = -1;
  bool quiet = false;  // only what went wrong is said

  Daemon() = default;
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() { forget(); }

  // The number says nothing here, or is a stranger's, if the daemon runs in another container: then only the lock tells.
  void find(int number) {
    pidfd = static_cast<int>(::syscall(SYS_pidfd_open, number, 0));
    if (pidfd >= 0 && program_of(std::to_string(number)) != program_of("self")) forget();
    if (pidfd >= 0) pid = number;
  }

 private:
  void forget() {
    if (pidfd >= 0) ::close(pidfd);
    pidfd = -1;
  }
};

Status ask(const control::MountEntry& mounted, Daemon& daemon) {
  daemon.source = mounted.source;  // byte by byte, as JSON cannot say it
  Volume client = TRY(Volume::of_mount(mounted.directory));
  const auto status = TRY(client.status());
  daemon.log = status["mount"].value("log", "");
  daemon.snapshots_dir = status["mount"].value("snapshots_dir", "");
  daemon.read_only = status["mount"].value("read_only", mounted.read_only);  // a daemon from before an update does not say so
  daemon.read_only |= status["mount"].value("shut_down", false);             // nobody expects a clean end then
  if (!daemon.read_only && status.value("read_only", false)) daemon.failure = status.value("read_only_reason", "");
  daemon.find(status["mount"].value("pid", 0));
  return {};
}

// The kernel keeps even root out of what a user has mounted for himself alone, but lets root unmount it. And a bind mount of a file
// has nobody to ask, as it may be one that waits when it is opened. One of a snapshot has nothing but files.
Status ask_or_guess(const control::MountEntry& mounted, Daemon& daemon) {
  const Status asked = ask(mounted, daemon);
  if (!mounted.is_whole() && (asked.fails_with(Errc::not_directory) || asked.fails_with(Errc::unsupported))) {
    const auto other = control::find_other_mount(mounted);
    if (other && ask(*other, daemon).ok()) return {};
  } else if (!asked.fails_with(Errc::access) || ::geteuid() != 0) {
    return asked;
  }
  daemon.log = daemon::former_log(mounted.directory);
  daemon.read_only = mounted.read_only;
  return {};
}

// Ended within so many milliseconds, -1: however long it takes.
bool ends_within(const Daemon& daemon, int milliseconds) {
  pollfd end{daemon.pidfd, POLLIN, 0};
  int ended = 0;
  do ended = ::poll(&end, 1, milliseconds);
  while (ended < 0 && errno == EINTR);
  return ended > 0;
}

// Processes that show it: with the last one of a namespace its mounts go.
std::string keepers_text(const Daemon& daemon) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (const io::Holder& keeper : io::keepers_of(daemon.device, daemon.source, kMost))
    text += (text.empty() ? "" : ", ") + io::describe(keeper);
  return text.empty() ? "none that you may see" : text;
}

void say_what_is_waited_for(const Daemon& daemon, std::ostream& err) {
  if (daemon.quiet) return;
  err << fmt::format(
      "varve: unmounted; waiting until the daemon{} has written everything to {} and ended. It also waits for "
      "every other mount namespace that still shows the filesystem: {}{}\n",
      daemon.pid ? fmt::format(" (process {})", daemon.pid) : "", daemon.source, keepers_text(daemon),
      daemon.pid ? fmt::format(". `varve umount --pid {}` ends it at once, there too", daemon.pid) : "");
}

// Without a limit: the image is not clean before, and a large cache takes its time on a slow disk.
void wait_for_end(const Daemon& daemon, std::ostream& err) {
  if (daemon.pidfd < 0 || ends_within(daemon, kPatienceMs)) return;
  say_what_is_waited_for(daemon, err);
  (void)ends_within(daemon, -1);
}

// Opens when no process holds the image any more; Errc::in_use when one does that came after the daemon.
Result<std::unique_ptr<io::BlockDevice>> wait_for_device(const Daemon& daemon, std::ostream& err) {
  for (int looks = 0;; ++looks) {
    auto device = remote::open_device(daemon.source, {.access = io::Access::read_only, .names_holder = false});
    const bool is_too_late = looks == (daemon.pidfd >= 0 ? kLooksAfterEnd : kLooksInTheDark);
    if (!device.fails_with(Errc::in_use) || is_too_late || control::find_mount_of(daemon.source)) return device;
    if (looks == kPatienceMs / kLook.count()) say_what_is_waited_for(daemon, err);
    std::this_thread::sleep_for(kLook);
  }
}

Status in_use(const Daemon& daemon, std::ostream& err) {
  if (daemon.pidfd < 0)
    return Error(Errc::in_use, fmt::format("{}: unmounted, but still in use, or again: whether it is clean has not been looked at",
                                           daemon.source));
  err << fmt::format("varve: {}: unmounted, and in use again: whether it was left clean has not been looked at\n",
                     daemon.source);
  return {};
}

Error not_clean(const Daemon& daemon) {
  const std::string why = daemon.failure.empty() ? "" : fmt::format(", having become read-only ({})", daemon.failure);
  return Error(Errc::io,
               fmt::format("{}: unmounted, but the daemon could not bring it to a clean end{}; the next mount recovers it. "
                           "Its log: {}",
                           daemon.source, why, daemon.log));
}

// Of a user who has the mount and not the device, the daemon's end has to do.
bool is_not_ours(const Error& error) { return error.is(Errc::access) || error.is(Errc::not_permitted); }

// A stick that was pulled, or a server that has died: the daemon's last writes may have failed after it was asked.
Error not_known(const Daemon& daemon, const Error& error) {
  return Error(Errc::io, fmt::format("unmounted, but not known to be clean, as it cannot be opened: {}. The daemon's log: {}",
                                     error.message(), daemon.log));
}

Status check_clean(const Daemon& daemon, std::ostream& err) {
  wait_for_end(daemon, err);
  const auto device = wait_for_device(daemon, err);
  if (!daemon.failure.empty()) return not_clean(daemon);  // whatever can be read now: not all that was written is there
  if (device.fails_with(Errc::in_use)) return in_use(daemon, err);
  if (daemon.read_only) return {};
  if (!device.ok()) return is_not_ours(device.error()) ? Status() : not_known(daemon, device.error());
  return TRY(checkpoint::read_superblocks(**device)).best.clean ? Status() : not_clean(daemon);
}

// fusermount3 would only say that it has no entry of it.
Status check_owner(const control::MountEntry& mounted) {
  const uid_t own = ::geteuid();
  if (own == 0 || !mounted.user || *mounted.user == own) return {};
  const passwd* const known = ::getpwuid(*mounted.user);
  const std::string name = known ? known->pw_name : fmt::format("user {}", *mounted.user);
  return Error(Errc::not_permitted, fmt::format("{}: mounted by {}: only {} may unmount it", mounted.directory, name,
                                                *mounted.user == 0 ? name : "root and " + name));
}

// One alone, beside the filesystem, which nobody takes for unmounted then.
bool shows_snapshot(const control::MountEntry& mounted, const Daemon& daemon) {
  return !daemon.snapshots_dir.empty() && mounted.root.starts_with("/" + daemon.snapshots_dir + "/");
}

// Asks it to end: it unmounts what it has mounted, in whatever namespace that is.
Status end_daemon(const io::Holder& holder, std::ostream& err) {
  Daemon daemon;
  daemon.source = holder.source;
  daemon.log = "the system's log";
  daemon.find(holder.pid);
  if (::kill(holder.pid, SIGTERM) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: cannot be ended by you: {}", io::describe(holder), errno_text()));
  struct stat status {};
  if (holder.source.empty() || holder.is_elsewhere || ::stat(holder.source.c_str(), &status) != 0) {  // its image may have no name here
    wait_for_end(daemon, err);
    return {};
  }
  return check_clean(daemon, err);
}

std::optional<io::Holder> daemon_of(const struct stat& status, const std::string& source) {
  for (io::Holder& holder : io::holders_of(status)) {
    if (holder.directory.empty()) continue;
    holder.source = source;  // it may have been mounted by another name, and then been renamed
    return std::move(holder);
  }
  return {};
}

// A daemon that serves an image or a device in another mount namespace, or by another name: also through a loop device.
std::optional<io::Holder> daemon_elsewhere(const std::string& source) {
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) return {};
  if (auto found = daemon_of(status, source)) return found;
  if (!S_ISREG(status.st_mode)) return {};
  const io::Layer image = io::stack_of(status, source).layers.front();
  for (const io::Stack& stack : io::loop_stacks()) {
    const std::string& loop = stack.layers.front().name;
    const bool stands_on_it = std::ranges::any_of(stack.layers, [&](const io::Layer& layer) { return layer.same_object(image); });
    if (!stands_on_it || ::stat(loop.c_str(), &status) != 0) continue;
    if (auto found = daemon_of(status, loop)) return found;
  }
  return {};
}

Status umount_process(int pid, std::ostream& err) {
  const io::Holder holder = io::mount_daemon(pid);
  if (holder.pid == 0)
    return Error(Errc::not_found, fmt::format("process {}: is no daemon of a mount that you may see: varve list has them", pid));
  return end_daemon(holder, err);
}

struct UmountArguments {
  std::string directory;
  bool lazy = false, quiet = false;
  int pid = 0;
};

Status umount(const UmountArguments& arguments, IoLayer& io) {
  const std::string& argument = arguments.directory;
  std::string directory = control::resolve_mount_point(argument);
  auto mounted = directory.empty() ? std::nullopt : control::find_mount(directory);
  if (!mounted) {  // as umount(8), by the device or image; but never by a directory within
    const auto place = control::find_place(argument);
    if (!place.ok() && (place.fails_with(Errc::not_found) || place.fails_with(Errc::invalid))) return place.error();
    std::error_code ignored;
    if (place.ok() && !place->is_mounted())
      if (const auto elsewhere = daemon_elsewhere(place->source)) return end_daemon(*elsewhere, io.err);
    if (!place.ok() || !place->is_mounted() || std::filesystem::is_directory(directory, ignored))
      return Error(Errc::not_found, fmt::format("{}: not a mount point, and not mounted", argument));
    directory = place->directory;
    mounted = control::find_mount(directory);
  }
  if (!mounted || !mounted->is_varve()) return Error(Errc::unsupported, fmt::format("{}: not a Varve filesystem", argument));
  TRY(check_owner(*mounted));
  if (arguments.lazy) return daemon::detach(directory, daemon::Detach::now);
  Daemon daemon;
  daemon.quiet = arguments.quiet;
  daemon.device = mounted->device;
  const Status asked = ask_or_guess(*mounted, daemon);
  if (asked.ok()) {
    const bool has_others = control::find_other_mount(*mounted).has_value();  // afterwards the device number may be another's
    TRY(daemon::detach(directory, daemon::Detach::when_unused));
    const auto other = has_others ? control::find_other_mount(*mounted) : std::nullopt;
    if (!other) return check_clean(daemon, io.err);
    if (arguments.quiet || shows_snapshot(*mounted, daemon)) return {};
    io.err << fmt::format("varve: {}: unmounted; the filesystem is still mounted at {}\n", directory, other->directory);
    return {};
  }
  if (!asked.error().is(Errc::io)) return asked;
  io.err << "varve: " << directory << ": its daemon is gone; clearing the mount point. Its log: " << daemon::former_log(directory) << "\n";
  return daemon::clear_dead(directory);
}

}  // namespace

void declare_umount(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<UmountArguments>();
  CLI::App* command = app.add_subcommand("umount", "Unmount; returns when the image is complete and clean");
  command->add_option("directory", arguments->directory, "Where it is mounted, or what is mounted");
  auto* const pid = command->add_option("--pid", arguments->pid, "End this daemon, which may be in a container: varve list has its number")
                        ->excludes("directory");
  command->add_flag("-l,--lazy", arguments->lazy, "Detach now, finish when nobody uses it any more; do not wait")->excludes(pid);
  command->add_flag("-q,--quiet", arguments->quiet, "Say only what went wrong, not what is waited for or where else it is mounted");
  command->callback([arguments, &chosen] {
    chosen = [arguments](IoLayer& io) -> Status {
      if (arguments->pid) return umount_process(arguments->pid, io.err);
      if (arguments->directory.empty())
        return Error(Errc::invalid, "umount: directory is missing: where it is mounted, or what is mounted");
      return umount(*arguments, io);
    };
  });
}

}  // namespace varve::tool
