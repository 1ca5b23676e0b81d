#include "varve/observe/doctor_checks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/counted.h"
#include "base/duration.h"
#include "base/memory_group.h"
#include "control/status_fields.h"
#include "daemon/mount_right.h"
#include "io/block_folder.h"
#include "io/reactor.h"
#include "io/rotational.h"
#include "io/stacking.h"
#include "remote/network_name.h"
#include "varve/first_line.h"
#include "varve/observe/past_errors.h"
#include "varve/observe/place_facts.h"
#include "varve/observe/status_text.h"
#include "varve/observe/superblock_json.h"
#include "varve/volume/image_reader.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

using Grade = Finding::Grade;
namespace files = std::filesystem;

constexpr std::uint64_t kUsualMemory = 256ULL << 20;  // memory=, see mount.varve(8)

Finding kernel() {
  utsname name{};
  ::uname(&name);
  int major = 0, minor = 0;
  (void)std::sscanf(name.release, "%d.%d", &major, &minor);
  const int version = major * 100 + minor;
  if (version < 510)
    return {Grade::broken, "kernel", fmt::format("Linux {}: too old", name.release),
            "Varve is tested from Linux 5.10 on"};
  if (version < 618)
    return {Grade::note, "kernel",
            fmt::format("Linux {}: sync(1) alone does not reach a FUSE filesystem", name.release),
            "fsync does; everything else is on its way after five seconds"};
  return {Grade::good, "kernel", fmt::format("Linux {}", name.release), ""};
}

Finding fuse_device() {
  if (::access("/dev/fuse", F_OK) != 0)
    return {Grade::broken, "/dev/fuse", "missing",
            "as root: modprobe fuse; in a container: start it with --device /dev/fuse"};
  if (::access("/dev/fuse", R_OK | W_OK) != 0)
    return {Grade::broken, "/dev/fuse", "you may not open it",
            "its usual mode is 666 (chmod 666 /dev/fuse as root); in a container: --device /dev/fuse"};
  return {Grade::good, "/dev/fuse", "there, and usable", ""};
}

Finding fusermount() {
  if (::geteuid() == 0 && !daemon::has_right_to_mount())
    return {Grade::broken, "mounting", "root may not mount here, without the capability CAP_SYS_ADMIN", "give it to the container"};
  if (::geteuid() == 0) return {Grade::good, "fusermount3", "not needed by root", ""};
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    struct stat status {};
    const std::string program = path.substr(at, end - at) + "/fusermount3";
    at = end + 1;
    if (::stat(program.c_str(), &status) != 0) continue;
    if (status.st_mode & S_ISUID) return {Grade::good, "fusermount3", program, ""};
    return {Grade::broken, "fusermount3", program + ": not setuid root, so that only root can mount",
            "install the package fuse3 anew"};
  }
  return {Grade::broken, "fusermount3", "not found: only root can mount", "install the package fuse3"};
}

Finding fuse_conf() {
  std::ifstream file("/etc/fuse.conf");
  bool allowed = false;
  for (std::string line; std::getline(file, line);) allowed |= line.starts_with("user_allow_other");
  if (::geteuid() == 0 || allowed)
    return {Grade::good, "fuse.conf", allowed ? "user_allow_other is set" : "not needed by root", ""};
  return {Grade::note, "fuse.conf", "users cannot mount with allow_other: their mounts are for themselves alone",
          "a line user_allow_other in /etc/fuse.conf lets them"};
}

Finding ring() {
  if (const char* chosen = std::getenv("VARVE_IO"); chosen && std::string_view(chosen) == "threads")
    return {Grade::slow, "io_uring", "switched off by VARVE_IO=threads", "unset it"};
  const int error = io::Reactor::probe_ring();
  if (!error) return {Grade::good, "io_uring", "usable", ""};
  return {Grade::slow, "io_uring",
          fmt::format("not usable here ({}): threads do the I/O, which costs some speed", std::strerror(error)),
          "sysctl kernel.io_uring_disabled=0, or a container's seccomp profile that allows it"};
}

Finding memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < (512ULL << 20))
    return {Grade::broken, "memory", fmt::format("ulimit -v is {}", size_text(limit.rlim_cur)),
            "raise it: the daemon takes up to 256 MiB (memory=)"};
  const MemoryGroup group = memory_group_of();
  if (group.limit / 2 < kUsualMemory)
    return {Grade::note, "memory",
            fmt::format("this control group may take {}: a mount from here is bounded by half of that", size_text(group.limit)), ""};
  return {Grade::good, "memory", "no limit below what a mount takes", ""};
}

// The daemon may live in another group than this process.
void check_memory(const Json& status, std::vector<Finding>& found) {
  const std::uint64_t bound = control::number_of(status, "memory.memory_limit_bytes");
  const auto daemon = static_cast<int>(control::number_of(status, "mount.pid"));
  if (!bound || !daemon) return;
  const MemoryGroup group = memory_group_of(daemon);
  if (group.limit == MemoryGroup::kNone || group.limit / 4 * 3 >= bound) return;
  found.push_back({Grade::unsafe, "memory",
                   fmt::format("the daemon takes up to {}, but its control group has {} ({}): the kernel may kill it", size_text(bound),
                               size_text(group.limit), group.file),
                   "without memory= the daemon follows a limit that has just changed within 10 s. Otherwise give the group more, "
                   "or mount again without memory=: then the daemon takes half of what the group has, now and later"});
}

Finding helpers() {
  for (const char* folder : {"/usr/sbin", "/sbin", "/usr/local/sbin"})
    if (::access(fmt::format("{}/umount.fuse.varve", folder).c_str(), X_OK) == 0) {
      if (std::string_view(folder) != "/usr/local/sbin")
        return {Grade::good, "helpers", "mount(8) and umount(8) know Varve", ""};
      return {Grade::note, "helpers", "installed in /usr/local/sbin, where mount(8) does not look",
              "install with --prefix /usr"};
    }
  return {Grade::note, "helpers", "not installed: umount(8) returns before the image is clean",
          "use varve umount, or install Varve with --prefix /usr"};
}

// A partition has that of its disk.
std::optional<files::path> queue_of(const files::path& folder) {
  std::error_code error;
  for (const files::path& place : {folder / "queue", folder / "../queue"})
    if (files::exists(place, error)) return place;
  return {};
}

void check_queue(dev_t device, std::vector<Finding>& found) {
  const files::path folder = io::block_folder(device);
  const auto queue = queue_of(folder);
  if (!queue) {
    found.push_back(
        {Grade::note, "disk", "the system says nothing about what is below (network, or a stacked filesystem)", ""});
    return;
  }
  if (io::is_rotational(folder))
    found.push_back({Grade::note, "disk", "rotational: reading scattered files seeks",
                     "varve clean -s defragmenting, now and then"});
  else
    found.push_back({Grade::good, "disk", "not rotational", ""});
  const std::string cache = first_line(*queue / "write_cache");
  if (cache == "write back") found.push_back({Grade::good, "write cache", "has one, and is flushed at each fsync", ""});
  if (cache == "write through")
    found.push_back({Grade::note, "write cache",
                     "says that it has none: no flushes are sent. Cheap bridges and some virtual disks say so wrongly",
                     "pull the plug once before you trust it"});
  const bool discards = first_line(*queue / "discard_max_bytes") != "0";
  found.push_back(discards
                      ? Finding{Grade::note, "discard", "supported", "varve trim once a week, or mount with discard"}
                      : Finding{Grade::good, "discard", "not supported: nothing to do", ""});
  const files::path life = *queue / "../device/life_time";
  if (const std::string worn = first_line(life); !worn.empty()) {
    unsigned a = 0, b = 0;
    if (std::sscanf(worn.c_str(), "%x %x", &a, &b) == 2 && std::max(a, b) >= 9)
      found.push_back({Grade::unsafe, "wear",
                       fmt::format("the device says it has used {} % of its life", std::max(a, b) * 10), "replace it"});
    else
      found.push_back({Grade::good, "wear",
                       fmt::format("at most {} % of its life used, as the device says", std::max(a, b) * 10), ""});
  }
}

bool is_read_only(const control::Place& place) {
  if (!place.is_mounted() || place.is_dead) return false;
  const auto status = mount_status(place.directory);
  return status.ok() && status->value("read_only", false);
}

// Read-only, it can give nothing back.
void check_host(const std::string& path, const struct stat& status, bool is_read_only, std::vector<Finding>& found) {
  struct statvfs host {};
  if (::statvfs(path.c_str(), &host) != 0) return;
  const std::uint64_t room = host.f_bavail * host.f_frsize, has = static_cast<std::uint64_t>(status.st_blocks) * 512;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > has && size - has > room)
    found.push_back({Grade::unsafe, "host",
                     fmt::format("the image may still grow by {}, but the host has {} free: then changes are refused until it has room",
                                 size_text(size - has), size_text(room)),
                     is_read_only ? "make room there" : "make room there, or varve trim to give blocks back"});
  else
    found.push_back({Grade::good, "host", "has room for all of the image", ""});
  if (status.st_mode & (S_IROTH | S_IWOTH))
    found.push_back({Grade::unsafe, "rights",
                     "others may read or write the image file, past all rights in the filesystem",
                     "chmod 600 " + path});
}

// What a mount option costs here. By its name, with a value or without.
struct Judged {
  const char* option;
  Grade grade;
  const char* text;
  const char* advice;
};
constexpr Judged kJudged[] = {
    {"cleaner=off", Grade::slow, "garbage is not collected, and the filesystem is full early",
     "mount without it, or run varve clean now and then"},
    {"writeback=off", Grade::slow, "each small write goes to the daemon by itself", "mount without it"},
    {"sync", Grade::slow, "each change waits for the device, whether the program needs that or not", "mount without it: fsync does it"},
    {"strictatime", Grade::slow, "each read writes a time", "mount with relatime or noatime"},
    {"noxattr", Grade::note, "what files have of ACLs, capabilities, labels and attributes of users counts for nothing",
     "mount without it where anything needs them"},
    {"trace", Grade::slow, "each request of the device is recorded in a file", "mount without it when you have seen enough"},
    {"norecovery", Grade::unsafe, "shows the last checkpoint: what was synced since then is missing", "mount without it"},
};
constexpr unsigned kLongCommit = 60;  // seconds; twice what ext4 and Varve do

void judge_option(const std::string& option, std::vector<Finding>& found) {
  const std::string name = option.substr(0, option.find('='));
  for (const Judged& judged : kJudged)
    if (option == judged.option || name == judged.option)
      found.push_back({judged.grade, "options", fmt::format("{}: {}", option, judged.text), judged.advice});
  if (name == "commit" && std::strtoul(option.c_str() + option.find('=') + 1, nullptr, 10) > kLongCommit)
    found.push_back({Grade::unsafe, "options", option + ": a crash takes so many seconds of what no program has synced",
                     "mount without it, where that matters"});
}

void judge_options(const std::string& options, std::vector<Finding>& found) {
  for (std::size_t at = 0; at < options.size();) {
    const std::size_t end = std::min(options.find(',', at), options.size());
    judge_option(options.substr(at, end - at), found);
    at = end + 1;
  }
}

// One of five messages for a new file asks for an attribute that hardly a file has.
void check_messages(const Json& status, std::vector<Finding>& found) {
  constexpr std::uint64_t kMany = 100'000;
  const Json requests = control::section_of(status, "mount").value("requests", Json::object());
  std::uint64_t all = 0;
  for (const auto& [name, count] : requests.items()) all += count.get<std::uint64_t>();
  const std::uint64_t asked = requests.value("getxattr", std::uint64_t{0});
  if (all < kMany || asked * 8 < all || requests.value("setxattr", std::uint64_t{0})) return;
  found.push_back({Grade::note, "messages",
                   fmt::format("{} % of the kernel's messages ask for extended attributes, and nobody has set one since the mount",
                               asked * 100 / all),
                   "where nothing needs ACLs, capabilities or labels: mount with noxattr, see mount.varve(8)"});
}

// A mount knows more than what its last checkpoint says.
void check_errors(const control::Place& place, const format::Superblock& super, std::vector<Finding>& found) {
  auto status = superblock_status(super, place.source);
  if (place.is_mounted() && !place.is_dead)
    if (auto told = mount_status(place.directory); told.ok()) status = std::move(told).value();
  const PastErrors errors = past_errors(status);
  if (errors.count == 0) return;
  const std::string scrub = place.is_mounted() ? "varve scrub " + place.directory : "mount it, varve scrub DIRECTORY";
  const std::string advice = scrub + ": it names what is damaged, and when it finds nothing any more, this is over";
  found.push_back({errors.are_over() ? Grade::good : Grade::unsafe, "errors", text_of(errors), errors.are_over() ? "" : advice});
}

// One bad block may be a weak sector. Ever more of them are a medium that dies, and it takes more with it each day.
void check_medium(const Json& status, std::vector<Finding>& found) {
  constexpr std::uint64_t kFew = 3;
  const auto hour = control::number_of(status, "faults.places_last_hour"), day = control::number_of(status, "faults.places_last_day");
  if (day == 0) return;
  const std::string what = fmt::format("{} could not be read, or had wrong data, within the last day ({} within the last hour)",
                                       counted(day, "block"), hour);
  if (day < kFew)
    found.push_back({Grade::unsafe, "medium", what,
                     "look at the system's log and the device's own health; if there will be more, replace it"});
  else
    found.push_back({Grade::broken, "medium", "the medium is failing: " + what,
                     "copy what matters to another one now (cp, varve send, or varve salvage of the image), then replace it"});
}

void check_connection(const Json& status, std::vector<Finding>& found) {
  if (const std::string outage = outage_text(status); !outage.empty())
    found.push_back({Grade::broken, "connection", outage, "look whether the server runs and is reached; nothing that was synced is lost"});
  if (const auto renewed = control::number_of(status, "connection.reconnects"))
    found.push_back({Grade::note, "connection", fmt::format("lost and made anew {} since the mount", counted(renewed, "time")),
                     "look at the server and the way there; patience=SECONDS says how long to wait for it"});
}

// Automatic snapshots reach less far back than was asked for where others have needed their room.
void check_protection(const Json& status, std::vector<Finding>& found) {
  if (!control::flag_of(status, "protection.on")) return;
  const std::string plain = varve::duration_text(control::number_of(status, "protection.seconds"));  // a daemon of before has no rules
  const std::string rules = control::words_of(status, "protection.protect");
  const std::string kept = fmt::format("protect={}: {}", rules.empty() ? plain : rules,
                                       counted(control::number_of(status, "protection.snapshots"), "automatic snapshot"));
  if (const auto given_up = control::number_of(status, "protection.given_up"))
    found.push_back({Grade::note, "protect", fmt::format("{}; {} went because their room was needed", kept, given_up),
                     "make room, where they should reach farther back"});
  else
    found.push_back({Grade::good, "protect", kept, ""});
}

void check_held(const Json& status, std::vector<Finding>& found) {
  if (const std::string host = host_text(status); !host.empty())
    found.push_back({Grade::broken, "room on host", host,
                     "make room where the image lies, or varve trim to give blocks back; nothing that was synced is lost"});
  else if (const auto times = control::number_of(status, "host.times"))
    found.push_back({Grade::note, "room on host", fmt::format("was lacking {} since the mount", counted(times, "time")),
                     "see to it that the image has room to grow"});
}

}  // namespace

const char* name_of(Finding::Grade grade) {
  constexpr const char* kGrades[] = {"ok", "note", "slow", "unsafe", "broken"};
  return kGrades[static_cast<unsigned>(grade)];
}

Json to_json(const Finding& finding) {
  return {{"grade", name_of(finding.grade)}, {"subject", finding.subject}, {"text", finding.text}, {"advice", finding.advice}};
}

std::vector<Finding> check_system() {
  return {kernel(), fuse_device(), fusermount(), fuse_conf(), ring(), memory_limit(), helpers()};
}

// A server's disk has nothing here to look at. What it is like beyond the first blocks a mount shows.
std::vector<Finding> check_remote(const control::Place& place) {
  if (!place.is_mounted())
    if (const auto image = ImageReader::open(place.source); !image.ok()) return {{Grade::broken, "image", image.error().message(), ""}};
  return {{Grade::good, "image", place.source + " is reached over the network", ""}};
}

std::vector<Finding> check_storage(const control::Place& place) {
  if (remote::is_network_name(place.source)) return check_remote(place);
  std::vector<Finding> found;
  struct stat status {};
  if (::stat(place.source.c_str(), &status) != 0)
    return {{Grade::broken, "image", place.source + ": " + errno_text(), "check the name"}};
  const auto image =
      place.is_mounted() ? ImageReader::open_beside_mount(place.source) : ImageReader::open(place.source);
  if (image.fails_with(Errc::not_varve) || image.fails_with(Errc::invalid))  // what it is lies on is of no interest then
    return {{Grade::broken, "image", image.error().message(), "check the name; where there was a Varve filesystem, fsck.varve --search"}};
  const std::uint64_t missing = image.ok() ? missing_bytes(place, image->super().device_blocks) : 0;
  if (image.fails_with(Errc::in_use)) {
    found.push_back({Grade::note, "image", image.error().message(), "so it was not looked at"});
  } else if (image.fails_with(Errc::access) || image.fails_with(Errc::not_permitted)) {
    found.push_back({Grade::note, "image", image.error().message(), "so it was not looked at: root or its owner can"});
  } else if (!image.ok()) {
    found.push_back({Grade::broken, "image", image.error().message(),
                     "fsck.varve -n " + place.source + " says what is damaged, and what a repair would do"});
  } else {
    const format::Superblock& super = image->super();
    check_errors(place, super, found);
    if (missing)
      found.push_back({Grade::broken, "image",
                       fmt::format("{} shorter than the filesystem: it was cut off while mounted", size_text(missing)),
                       "what lay there is lost: copy what can be read (cp, varve send), umount it, fsck.varve -n"});
    if (const auto unused = unused_bytes(place, super.device_blocks, super.segment_blocks))
      found.push_back({Grade::note, "size", fmt::format("the filesystem leaves {} of the device or image unused", size_text(unused)),
                       "varve resize " + (place.is_mounted() ? place.directory : place.source) + " makes it as large as that"});
    if (!super.clean && !place.is_mounted())
      found.push_back({Grade::note, "image", "not unmounted cleanly",
                       "the next mount recovers it; nothing that was synced is lost"});
  }
  if (S_ISREG(status.st_mode) && !missing) check_host(place.source, status, is_read_only(place), found);
  check_queue(S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev, found);
  return found;
}

std::vector<Finding> check_mount(const control::Place& place) {
  if (!place.is_mounted()) return {};
  if (place.is_dead) return {{Grade::broken, "mount", control::daemon_gone(place).message(), ""}};
  const auto status = mount_status(place.directory);
  if (!status.ok()) return {{Grade::note, "mount", status.error().message(), ""}};
  std::vector<Finding> found;
  if (control::flag_of(*status, "read_only") && !control::flag_of(*status, "mount.read_only")) {
    const std::string reason = control::words_of(*status, "read_only_reason");
    const bool lacks_room = reason.find(": make room ") != std::string::npos;  // io/transfer.h
    found.push_back({Grade::broken, "mount", "read-only after an error: " + reason,
                     lacks_room ? "make room, umount it, mount it again: nothing that was synced is lost, and nothing is to be repaired"
                                : "umount it, look at the disk, fsck.varve -n"});
  }
  if (const std::string damage = control::words_of(*status, "snapshots.damage"); !damage.empty())
    found.push_back({Grade::broken, "snapshots", damage, "umount it, fsck.varve -n"});
  check_medium(*status, found);
  check_memory(*status, found);
  check_connection(*status, found);
  check_held(*status, found);
  check_messages(*status, found);
  judge_options(control::words_of(*status, "mount.options"), found);
  if (const std::string log = control::words_of(*status, "mount.log"); log.starts_with("nowhere"))
    found.push_back({Grade::note, "log", log, "mount with log=FILE"});
  if (control::section_of(*status, "space").contains("available_blocks") && control::number_of(*status, "space.available_blocks") < 256) {
    const std::uint64_t kept = control::number_of(*status, "snapshots.held_bytes");
    found.push_back({Grade::broken, "room", kept ? fmt::format("full; snapshots hold {}", size_text(kept)) : "full",
                     kept ? "remove something, or a snapshot (varve snapshot list)" : "remove something, or varve resize"});
  }
  if (control::number_of(*status, "space.segments.clean") * 20 < control::number_of(*status, "space.segments.total"))
    found.push_back({Grade::slow, "space", "less than 5 % of the segments are clean: each write waits for cleaning",
                     "remove something, or varve clean --free 1G"});
  if (found.empty()) found.push_back({Grade::good, "mount", "works at " + place.directory, ""});
  check_protection(*status, found);
  return found;
}

}  // namespace varve::tool
