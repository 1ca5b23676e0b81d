#include "daemon/mount_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/logging.h"
#include "base/nearest.h"
#include "cleaner/victim_rule.h"
#include "daemon/ownership.h"

namespace varve::daemon {

namespace {

using Value = std::string_view;

struct Option {
  const char* name;
  enum class Form { flag, value } form;
  const char* help;  // null: too ordinary to be listed
  Status (*apply)(MountOptions&, Value);
};

Error bad_value(const char* name, Value value, const char* wanted) {
  return Error(Errc::invalid, fmt::format("option {}={}: {}", name, value, wanted));
}

Result<bool> parse_switch(const char* name, Value value) {
  if (value == "on") return true;
  if (value == "off") return false;
  return bad_value(name, value, "must be on or off");
}

Result<std::uint64_t> parse_number(const char* name, Value value, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.begin(), value.end(), number);
  if (error != std::errc() || end != value.end() || number < least || number > most)
    return bad_value(name, value, fmt::format("must be a number from {} to {}", least, most).c_str());
  return number;
}

Result<unsigned> parse_seconds(const char* name, Value value, std::uint64_t least, std::uint64_t most) {
  const auto seconds = parse_number(name, value, least, most);
  if (seconds.ok()) return static_cast<unsigned>(*seconds);
  return bad_value(name, value, fmt::format("must be a number of seconds from {} to {}, without a unit", least, most).c_str());
}

Status set_memory(MountOptions& o, Value value) {
  const auto bytes = parse_size(value);
  if (!bytes.ok()) return bad_value("memory", value, "must be a size, as 256M");
  if (*bytes < (1U << 20)) return bad_value("memory", value, "is less than 1 MiB: write it as 256M");
  o.memory_bound = *bytes;
  return {};
}

Status set_strategy(MountOptions& o, Value value) {
  TRY(cleaner::make_strategy(value));
  o.fs.strategy = value;
  return {};
}

Status set_policy(MountOptions& o, Value value) {
  TRY(cleaner::VictimRule::make(value));
  o.fs.victims = value;
  return {};
}

Status set_placement(MountOptions& o, Value value) {
  TRY(cleaner::make_placement(value, {}));
  o.fs.placement = value;
  return {};
}

Status set_idle_threads(MountOptions& o, Value value) {
  if (value == "auto") {
    o.server.idle_threads = IdleThreads::automatic;
    return {};
  }
  o.server.idle_threads = TRY(parse_switch("idle_threads", value)) ? IdleThreads::on : IdleThreads::off;
  return {};
}

constexpr auto kFlag = Option::Form::flag;
constexpr auto kValue = Option::Form::value;

constexpr Option kOptions[] = {
    {"ro", kFlag, "read-only: nothing is written, not even to recover",
     [](MountOptions& o, Value) { return o.fs.read_only = true, Status(); }},
    {"rw", kFlag, "read-write (the default)", [](MountOptions& o, Value) { return o.fs.read_only = false, Status(); }},
    {"norecovery", kFlag, "only with ro: show the last checkpoint, replay nothing",
     [](MountOptions& o, Value) { return o.fs.no_recovery = true, Status(); }},
    {"snapshot", kValue, "show this snapshot instead of the newest state; read-only",
     [](MountOptions& o, Value v) -> Status {
       if (v.empty()) return bad_value("snapshot", v, "must be the name of one");
       o.fs.snapshot = v;
       o.fs.read_only = true;
       return {};
     }},
    {"snapshots_dir", kValue, "the folder in the root that shows the snapshots, or none (.varve-snapshots)",
     [](MountOptions& o, Value v) -> Status {
       if (v.empty() || v == "." || v == ".." || v.find('/') != Value::npos || v.size() > 255)
         return bad_value("snapshots_dir", v, "must be a name, or none");
       o.snapshots_dir = v == "none" ? "" : v;
       return {};
     }},
    {"show_snapshots", kFlag, "listings of the root have that folder, too",
     [](MountOptions& o, Value) { return o.show_snapshots = true, Status(); }},
    {"protect", kValue, "keep states as snapshots that go by themselves, as 1h, or 1h,24h:1h,30d:1d; off gives up those there are (off)",
     [](MountOptions& o, Value v) -> Status {
       return o.fs.protection = TRY(snapshots::with_window(o.fs.protection, v)), Status();
     }},
    {"protect_every", kValue, "with protect: one at most so often, while something is written (30s)",
     [](MountOptions& o, Value v) -> Status {
       return o.fs.protection = TRY(snapshots::with_interval(o.fs.protection, v)), Status();
     }},
    {"relatime", kFlag, "access times as far as they matter (the default)",
     [](MountOptions& o, Value) { return o.fs.atime = fs::Atime::relative, Status(); }},
    {"noatime", kFlag, "no access times",
     [](MountOptions& o, Value) { return o.fs.atime = fs::Atime::never, Status(); }},
    {"strictatime", kFlag, "all access times",
     [](MountOptions& o, Value) { return o.fs.atime = fs::Atime::always, Status(); }},
    {"atime", kFlag, nullptr, [](MountOptions& o, Value) { return o.fs.atime = fs::Atime::relative, Status(); }},
    {"nostrictatime", kFlag, nullptr, [](MountOptions& o, Value) { return o.fs.atime = fs::Atime::relative, Status(); }},
    {"nosymfollow", kFlag, "follow no symbolic link there (only for root)",
     [](MountOptions& o, Value) { return o.nosymfollow = true, Status(); }},
    {"symfollow", kFlag, nullptr, [](MountOptions& o, Value) { return o.nosymfollow = false, Status(); }},
    {"allow_other", kFlag, "for all users (the default for root; needs user_allow_other in /etc/fuse.conf otherwise)",
     [](MountOptions& o, Value) { return o.allow_other = true, Status(); }},
    {"noallow_other", kFlag, "only for the user who mounts",
     [](MountOptions& o, Value) { return o.allow_other = false, Status(); }},
    {"discard", kFlag, "tell the device after each checkpoint what has become free",
     [](MountOptions& o, Value) { return o.fs.discard = true, Status(); }},
    {"nodiscard", kFlag, "do not (the default)", [](MountOptions& o, Value) { return o.fs.discard = false, Status(); }},
    {"writeback", kValue, "on|off: whether the kernel collects small writes (on)",
     [](MountOptions& o, Value v) -> Status {
       return o.wishes.writeback = TRY(parse_switch("writeback", v)), Status();
     }},
    {"noxattr", kFlag, "no extended attributes: no ACLs, capabilities or labels, and fewer messages",
     [](MountOptions& o, Value) { return o.wishes.xattrs = false, Status(); }},
    {"xattr", kFlag, nullptr, [](MountOptions& o, Value) { return o.wishes.xattrs = true, Status(); }},
    {"commit", kValue, "seconds after which what nobody syncs is written (30; 5 where sync(1) does not reach the filesystem)",
     [](MountOptions& o, Value v) -> Status {
       return o.commit_seconds = TRY(parse_seconds("commit", v, 1, 300)), Status();
     }},
    {"cleaner", kValue, "on|off: clean in the background (on)",
     [](MountOptions& o, Value v) -> Status { return o.fs.cleaner = TRY(parse_switch("cleaner", v)), Status(); }},
    {"strategy", kValue, "what the cleaner does with live data (adaptive)", set_strategy},
    {"policy", kValue, "how the cleaner chooses segments, as greedy, mdc+d-choices:d=20 (decline)", set_policy},
    {"placement", kValue, "which blocks share segments, as none, sfs:groups=4 (learned)", set_placement},
    {"streams", kValue, "places that the device can write in a row at one time, 1 to 64; no more are used",
     [](MountOptions& o, Value v) -> Status {
       return o.fs.streams = static_cast<unsigned>(TRY(parse_number("streams", v, 1, 64))), Status();
     }},
    {"tails", kValue, "1 to 1024: so many bytes of a small file stand beside its inode, without a block; off: of no new one",
     [](MountOptions& o, Value v) -> Status {
       o.fs.tails = v == "off" ? 0U : static_cast<std::uint32_t>(TRY(parse_number("tails", v, 1, format::kMaxTail)));
       return {};
     }},
    {"plugin", kValue, "shared object with policies; stands before the options that name them",
     [](MountOptions&, Value v) -> Status { return cleaner::load_plugin(TRY(check_loadable(std::string(v)))); }},
    {"memory", kValue, "bound of the daemon's memory, as 256M", set_memory},
    {"threads", kValue, "serving threads (one per CPU, at most 4)",
     [](MountOptions& o, Value v) -> Status {
       return o.server.threads = static_cast<unsigned>(TRY(parse_number("threads", v, 1, 64))), Status();
     }},
    {"idle_threads", kValue, "auto|on|off: serve at idle priority, which keeps callers on their CPU (auto)",
     set_idle_threads},
    {"max_background", kValue, "background requests the kernel may have under way (64)",
     [](MountOptions& o, Value v) -> Status {
       o.wishes.max_background = static_cast<std::uint16_t>(TRY(parse_number("max_background", v, 1, 1024)));
       o.wishes.congestion_threshold = static_cast<std::uint16_t>(std::max(o.wishes.max_background * 3 / 4, 1));
       return {};
     }},
    {"patience", kValue, "nbd, rbd: seconds without a connection or an answer, after which the device has failed (30)",
     [](MountOptions& o, Value v) -> Status {
       return o.patience_s = TRY(parse_seconds("patience", v, 5, 3600)), Status();
     }},
    {"take_over", kFlag, "take the lease of a holder that lives, which then writes nothing any more",
     [](MountOptions& o, Value) { return o.take_over = true, Status(); }},
    {"log", kValue, "file for messages, instead of the system's log",
     [](MountOptions& o, Value v) -> Status {
       TRY(check_writable_by_us_alone(std::string(v)));
       o.log_was_asked_for = true;
       return o.log_file = v, Status();
     }},
    {"trace", kValue, "file that records what reaches the device: time, operation, offset, length, flags",
     [](MountOptions& o, Value v) -> Status {
       TRY(check_writable_by_us_alone(std::string(v)));
       return o.trace_file = std::filesystem::absolute(v), Status();
     }},
    {"mlock", kFlag, "keep the daemon in memory",
     [](MountOptions& o, Value) { return o.lock_memory = true, Status(); }},
};

// For mount(2); the kernel knows them, and sync and dirsync are ours as well.
constexpr std::string_view kKernelFlags[] = {"nosuid", "suid", "nodev", "dev",    "noexec",
                                             "exec",   "sync", "async", "dirsync"};

// Says nothing to us: for mount(8), systemd, what is always so, or what Linux has given up (mand) or does by itself (iversion).
bool is_for_others(std::string_view option) {
  static constexpr std::string_view kNames[] = {
      "",       "defaults", "auto",  "noauto",     "nofail",   "_netdev",  "user",       "users",
      "nouser", "owner",    "group", "nodiratime", "diratime", "lazytime", "nolazytime", "default_permissions",
      "norelatime", "iversion", "noiversion", "mand", "nomand", "silent", "loud"};
  static constexpr std::string_view kPrefixes[] = {"x-", "X-", "user=", "comment=", "uhelper=", "helper="};
  if (std::ranges::find(kNames, option) != std::end(kNames)) return true;
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return option.starts_with(prefix); });
}

// ext4 takes these, so fstab may have them. Varve does the same without them.
constexpr std::string_view kDoneAnyway[] = {"acl",       "user_xattr", "barrier",          "barrier=1",        "delalloc",
                                            "errors=remount-ro", "auto_da_alloc", "journal_checksum", "data=ordered"};

// The same, where Varve does otherwise.
bool is_ext4_word(std::string_view option) {
  static constexpr std::string_view kNames[] = {
      "noacl",         "nouser_xattr", "nobarrier",    "nodelalloc",     "noauto_da_alloc", "journal_async_commit",
      "noinit_itable", "init_itable",  "dioread_lock", "dioread_nolock", "block_validity", "noblock_validity", "nojournal_checksum",
      "mbcache",       "nombcache",    "bsddf",        "minixdf",        "grpid",          "nogrpid",         "bsdgroups",
      "sysvgroups",    "orlov",        "oldalloc"};
  static constexpr std::string_view kWithValue[] = {"errors=", "data=", "stripe=", "init_itable=", "data_err=", "inode_readahead_blks=",
                                                    "max_batch_time=", "min_batch_time=", "journal_ioprio=", "max_dir_size_kb=", "resuid=",
                                                    "resgid=", "usrjquota=", "grpjquota=", "jqfmt=", "barrier="};
  const auto begins = [option](std::string_view name) { return option.starts_with(name); };
  return std::ranges::find(kNames, option) != std::end(kNames) || std::ranges::any_of(kWithValue, begins);
}

bool is_owner_option(std::string_view name) {
  static constexpr std::string_view kNames[] = {"uid", "gid", "umask", "fmask", "dmask"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

Error unknown_option(std::string_view text, std::string_view name) {
  if (is_owner_option(name))
    return Error(Errc::invalid, fmt::format("unknown option {}: files have owners and modes of their own here; chown and chmod change them",
                                            text));
  std::vector<std::string> names(std::begin(kKernelFlags), std::end(kKernelFlags));
  for (const Option& option : kOptions) names.emplace_back(option.name);
  const std::string near = nearest(name, names);
  return Error(Errc::invalid, fmt::format("unknown option {}: {}`varve mount --help` lists those that exist", text,
                                          near.empty() ? "" : fmt::format("did you mean {}? ", near)));
}

Status apply(std::string_view text, MountOptions& options) {
  if (is_for_others(text)) return {};
  if (std::ranges::find(kKernelFlags, text) != std::end(kKernelFlags)) {
    options.kernel_flags.emplace_back(text);
    if (text == "sync" || text == "async") options.durable.everything = text == "sync";
    if (text == "dirsync") options.durable.names = true;
    return {};
  }
  if (std::ranges::find(kDoneAnyway, text) != std::end(kDoneAnyway)) return {};
  if (is_ext4_word(text)) {
    log_warn("mount option {} is one of ext4 and changes nothing here: mount.varve(8) says what is done", text);
    return {};
  }
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  for (const Option& option : kOptions) {
    if (name != option.name) continue;
    const bool has_value = equals != std::string_view::npos;
    const Value value = has_value ? text.substr(equals + 1) : Value();
    if (has_value != (option.form == kValue) || (has_value && value.empty()))
      return Error(Errc::invalid, fmt::format("option {}: {}", name, option.form == kFlag ? "takes no value" : "needs a value"));
    const Status applied = option.apply(options, value);
    if (applied.ok() || applied.error().message().starts_with("option ")) return applied;
    return Error(applied.error().code(), fmt::format("option {}: {}", text, applied.error().message()));
  }
  return unknown_option(text, name);
}

// Rules of protect= have commas between them, and no option begins with a digit.
std::size_t end_of_option(std::string_view text) {
  const auto begins_a_rule = [text](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::size_t comma = text.find(',');
  while (text.starts_with("protect=") && comma != std::string_view::npos && begins_a_rule(comma + 1)) comma = text.find(',', comma + 1);
  return comma;
}

}  // namespace

Status parse_options(std::string_view text, MountOptions& options) {
  if (!text.empty()) options.given.append(options.given.empty() ? "" : ",").append(text);
  while (!text.empty()) {
    const auto comma = end_of_option(text);
    TRY(apply(text.substr(0, comma), options));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return {};
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(text.end() - end));
  if (error != std::errc() || suffix.size() > 1) return Errc::invalid;
  unsigned shift = 0;
  if (!suffix.empty()) {
    const auto unit = std::string_view("KMGT").find(static_cast<char>(suffix[0] & ~0x20));
    if (unit == std::string_view::npos) return Errc::invalid;
    shift = 10 * static_cast<unsigned>(unit + 1);
  }
  if (number > (~0ULL >> shift)) return Errc::invalid;
  return number << shift;
}

std::vector<OptionHelp> option_help() {
  std::vector<OptionHelp> help;
  for (const Option& option : kOptions)
    if (option.help) help.push_back({option.name, option.help});
  return help;
}

}  // namespace varve::daemon
