#include "daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "base/errc.h"
#include "base/heap_trim.h"
#include "base/json_text.h"
#include "base/logging.h"
#include "control/mount_table.h"
#include "control/onlooker.h"
#include "daemon/background.h"
#include "daemon/departure.h"
#include "daemon/device_trace.h"
#include "daemon/early_end.h"
#include "daemon/group_watch.h"
#include "daemon/lifetime.h"
#include "daemon/log_output.h"
#include "daemon/memory_plan.h"
#include "daemon/mount_point.h"
#include "daemon/server.h"
#include "fs/snapshot_looks.h"
#include "fuse/operations/session.h"
#include "fuse/transport/device_transport.h"
#include "io/holding_device.h"
#include "lease/leased_device.h"
#include "remote/network_name.h"
#include "remote/open_device.h"

namespace varve::daemon {

namespace {

constexpr int kPatienceMs = 2000;  // for users of a mount that a signal ends

// Everything a mount consists of; members end in the reverse order, when nothing calls the filesystem any more.
struct Mount {
  ~Mount() {
    if (device) device->on_lost({});
    if (holding) holding->forget_listener();
  }

  std::unique_ptr<lease::LeasedDevice> device;
  std::unique_ptr<io::HoldingDevice> holding;
  std::unique_ptr<DeviceTrace> trace;
  std::unique_ptr<fs::Filesystem> fs;
  std::unique_ptr<MountPoint> point;
  std::unique_ptr<fuse::DeviceTransport> transport;
  std::unique_ptr<fuse::Session> session;
  std::unique_ptr<Server> server;
  std::optional<GroupWatch> group;
};

// A process that the kernel needs for writing back memory must not itself wait for memory to be written back. Returns what
// it can only get before.
std::shared_ptr<fuse::LargeMemory> protect_process(const MountOptions& options, std::size_t large_bytes) {
  auto memory = std::make_shared<fuse::LargeMemory>(large_bytes);
#ifdef PR_SET_IO_FLUSHER
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);  // only with CAP_SYS_RESOURCE
#endif
  if (options.lock_memory && ::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) log_warn("mlock: {}", errno_text());
  return memory;
}

// The daemon of a mount that has just gone may not have written everything yet: a moment later the device is free.
Result<std::unique_ptr<io::BlockDevice>> open_when_free(const std::string& source, const io::OpenOptions& options) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
  constexpr int kLooks = 250;
  io::OpenOptions look = options;
  look.names_holder = false;
  for (int looks = 0; looks < kLooks; ++looks) {
    auto device = remote::open_device(source, look);
    if (!device.fails_with(Errc::in_use)) return device;
    if (control::find_mount_of(source)) break;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return remote::open_device(source, options);
}

// From now on what the host has no room for is held. Not at the mount, which is read-only then: nothing waits for it yet.
Status hold_for_room(io::HoldingDevice& device, fs::Filesystem& fs) {
  if (fs.read_only()) return {};
  return device.begin([&fs](io::HoldingDevice::News news) { fs.set_host_full(news != io::HoldingDevice::News::over); });
}

Json facts_of(const lease::LeasedDevice& device, const io::HoldingDevice& holding) {
  const lease::LeaseFacts lease = device.facts();
  Json json{{"lease", {{"held", lease.is_held}, {"others_may_reach_it", lease.may_be_shared}, {"holder", lease.holder},
                       {"lost_because", lease.why_lost}, {"last_look_ms", lease.look_age_ms}}}};
  const io::HostRoom host = holding.room();
  json["host"] = {{"full", host.is_full}, {"since_ms", host.full_ms}, {"held_bytes", host.held_bytes}, {"times", host.times}};
  if (const auto connection = device.connection())
    json["connection"] = {{"connected", connection->is_there}, {"away_ms", connection->away_ms},
                          {"patience_ms", connection->patience_ms}, {"reconnects", connection->renewals}};
  return json;
}

// Since 6.18 the kernel passes sync(2) and syncfs(2) on to a mount by root of a block device (docs/posix.md, "sync").
bool gets_syncs(const io::BlockDevice& device) {
  utsname kernel{};
  if (!device.geometry().is_block_device || ::geteuid() != 0 || ::uname(&kernel) != 0) return false;
  const std::string_view release = kernel.release;
  unsigned major = 0, minor = 0;
  const auto dot = std::from_chars(release.data(), release.data() + release.size(), major);
  if (dot.ec != std::errc() || dot.ptr == release.data() + release.size() || *dot.ptr != '.') return false;
  std::from_chars(dot.ptr + 1, release.data() + release.size(), minor);
  return major > 6 || (major == 6 && minor >= 18);
}

// What a mount finds damaged, a check finds in full.
Result<std::unique_ptr<fs::Filesystem>> open_filesystem(io::BlockDevice& device, const fs::Options& options) {
  auto mounted = fs::Filesystem::mount(device, options);
  if (!mounted.fails_with(Errc::corrupt)) return mounted;
  return Error(Errc::corrupt, fmt::format("{0}: {1}. Nothing was changed; fsck.varve -n {0} says what is damaged, and what a repair would "
                                          "do", device.name(), mounted.error().message()));
}

// Without a lease of its own a mount must not stand beside one that writes, on whatever machine.
Status look_for_writer(io::BlockDevice& device) {
  control::Onlooker onlooker(device);
  const control::Presence presence = onlooker.watch();
  if (presence == control::Presence::lives)
    return Error(Errc::in_use, fmt::format("{} is in use by {}: stop that first", device.name(), onlooker.holder()));
  if (presence == control::Presence::unknown)
    log_warn("{}: {}, has not given it back. If it is still in use there, this mount will show errors as soon as something is "
                 "written", device.name(), onlooker.holder());
  return {};
}

Result<std::unique_ptr<Mount>> attach(const DaemonArguments& arguments, Lifetime& lifetime) {
  const MountOptions& options = arguments.options;
  const MemoryGroup group = memory_group_of();
  const std::size_t bound = options.memory_bound ? options.memory_bound : usual_bound(group, options.server.threads);
  const MemoryPlan plan = TRY(plan_memory(bound, options.server.threads));
  thrift_heap(plan.bound);
  ServerOptions server = options.server;
  server.threads = plan.threads;
  server.request_bytes = plan.request_bytes;
  server.memory = protect_process(options, plan.large_bytes);
  auto mount = std::make_unique<Mount>();
  mount->group.emplace(plan, group, options.memory_bound);
  std::optional<EarlyEnd> early(lifetime.signals());  // until there is a mount that must be detached
  const std::string directory = TRY(prepare_mount_point(arguments.directory));
  const std::string source = remote::absolute_name(arguments.source);

  io::OpenOptions open;
  open.access = options.fs.read_only ? io::Access::read_only : io::Access::read_write;
  open.patience_s = options.patience_s;
  lease::Use use{"varve mount", "at " + directory, options.take_over};
  auto device = TRY(open_when_free(source, open));
  mount->device = TRY(lease::LeasedDevice::hold(std::move(device), std::move(use)));
  if (options.fs.read_only) TRY(look_for_writer(*mount->device));
  fs::Options fs_options = options.fs;
  fs_options.count_references = true;
  using Mode = snapshots::ProtectionSettings::Mode;
  if (fs_options.protection.mode == Mode::leave) fs_options.protection.mode = Mode::fade;
  fs_options.seal_delay_ms =
      1000ULL * (options.commit_seconds ? options.commit_seconds : usual_commit_seconds(gets_syncs(*mount->device)));
  fs_options.memory_bytes = plan.engine_bytes;
  fs_options.memory_limit_bytes = plan.bound;
  mount->holding = std::make_unique<io::HoldingDevice>(*mount->device);
  if (!options.trace_file.empty()) mount->trace = TRY(DeviceTrace::begin(options.trace_file, *mount->holding));
  io::BlockDevice& used = mount->trace ? mount->trace->device() : *mount->holding;
  mount->fs = TRY(open_filesystem(used, fs_options));
  mount->device->on_lost([fs = mount->fs.get()](const std::string& why) { fs->stop_writing(Error(Errc::in_use, why)); });
  TRY(hold_for_room(*mount->holding, *mount->fs));

  const io::Geometry& geometry = mount->device->geometry();
  const MountRequest request{directory, source, geometry.is_block_device, mount->fs->read_only(), geometry.is_roots_alone};
  early.reset();
  mount->point = TRY(MountPoint::attach(request, options));
  if (mount->point->has_claimed()) mount->device->note_claimed();
  mount->transport = std::make_unique<fuse::DeviceTransport>(mount->point->fd());
  fuse::SessionSettings settings{options.wishes, options.fs.clock, directory, source};
  settings.log = arguments.log;
  settings.options = options.given;
  settings.durable = options.durable;
  settings.device_facts = [&device = *mount->device, &holding = *mount->holding] { return facts_of(device, holding); };
  settings.read_ahead_bytes = server.read_ahead_bytes();
  settings.snapshots_dir = options.fs.snapshot.empty() ? options.snapshots_dir : "";
  settings.shows_snapshots_dir = options.show_snapshots;
  const bool has_snapshots = !settings.snapshots_dir.empty() && fs::snapshot_news(*mount->fs).newest;
  settings.wishes.allow_idmap = ::geteuid() == 0;  // the kernel lets nobody else map a mount of a user's
  settings.wishes.ask_opens = mount->fs->may_have_protected_files() || has_snapshots;
  mount->session = std::make_unique<fuse::Session>(*mount->fs, *mount->transport, std::move(settings),
                                             [&lifetime](int) { lifetime.unmounted(); });
  mount->server = std::make_unique<Server>(*mount->session, server);
  TRY(mount->session->wait_initialised());
  if (auto limit = mount->point->tune())
    mount->session->space_watch().limit_with([limit = *std::move(limit)](std::uint64_t bytes) mutable { limit.set(bytes); });
  return mount;
}

Result<std::unique_ptr<Mount>> begin(const DaemonArguments& arguments, Lifetime& lifetime) {
  try {
    return attach(arguments, lifetime);
  } catch (const std::system_error& error) {
    return Error(Errc::no_memory, fmt::format("cannot begin: {}", error.what()));  // no thread to be had
  }
}

void tell_memory(const GroupWatch& watch, const MountOptions& options, bool is_later = false) {
  const MemoryPlan& plan = watch.plan();
  const MemoryGroup& group = watch.group();
  if (!fits(plan.bound, group))
    log_warn("memory: the bound is {} MiB, but {}: the daemon may be killed", plan.bound / kMiB, text_of(group));
  else if (is_later && !options.memory_bound)
    log_info("memory: the bound is {} MiB from now on, since {}", plan.bound / kMiB, text_of(group));
  else if (!options.memory_bound && group.limit / 2 <= plan.bound)
    log_info("memory: the bound is {} MiB, since {}", plan.bound / kMiB, text_of(group));
}

// Its limit may change while the filesystem is mounted (MemoryMax= of systemd, docker update --memory).
void follow_group(Mount& mount, const MountOptions& options) {
  const GroupWatch::Step step = mount.group->look(memory_group_of());
  const MemoryPlan& plan = mount.group->plan();
  if (step.is_new) mount.server->limit_requests(plan.request_bytes);
  if (step.is_new || step.gives_back) mount.fs->bound_memory(plan.engine_bytes, plan.bound);
  if (step.gives_back) HeapTrim::give_back();
  if (step.tells) tell_memory(*mount.group, options, true);
}

End wait_for_end(Mount& mount, const MountOptions& options, Lifetime& lifetime) {
  for (;;) {
    if (const auto end = lifetime.wait(GroupWatch::kPauseMs)) return *end;
    follow_group(mount, options);
  }
}

// In 0.1.0 that folder had another name. What users have of this name comes first.
void tell_snapshots(const Mount& mount) {
  const fuse::SessionSettings& settings = mount.session->settings();
  if (settings.snapshots_dir.empty() || !fs::snapshot_news(*mount.fs).newest) return;
  fs::Operation operation(mount.fs->operations(), {});
  const auto found = mount.fs->lookup(operation, kRootIno, settings.snapshots_dir);
  if (found.ok()) {
    mount.fs->forget(found->ino, 1);
    return log_warn("no snapshots are shown: {}/{} is really there; snapshots_dir=NAME gives their folder another name",
                    settings.mount_point, settings.snapshots_dir);
  }
  log_info("snapshots are shown in {}/{} (snapshots_dir=NAME gives that folder another name; in 0.1.0 it was .snapshots)",
               settings.mount_point, settings.snapshots_dir);
}

// Once the log is open.
void tell(const Mount& mount, const MountOptions& options) {
  tell_memory(*mount.group, options);
  tell_snapshots(mount);
}

// Of a mount that is used although it has been detached, or could not be because something else is mounted there. What is
// written meanwhile should not be lost either, unless a second signal says that there is no time.
void wait_for_users(const MountPoint& point, fuse::Session& session, Lifetime& lifetime) {
  log_warn("{} is still used, perhaps in another mount namespace or below another mount: in {} ms its users get errors",
               point.directory(), kPatienceMs);
  session.write_back();
  if (!lifetime.wait_more(kPatienceMs)) session.write_back();
}

// After a signal or lack of memory. What ends when this has been answered or closed must not end before: see Departure. Null without
// a thread for it: then the mount is detached when its connection has been closed.
std::unique_ptr<Departure> depart(MountPoint& point, fuse::Session& session, Lifetime& lifetime) {
  std::unique_ptr<Departure> departure;
  try {
    departure = std::make_unique<Departure>(point, [&lifetime] { lifetime.detached(); });
    if (lifetime.wait_detached() == End::unmounted) return departure;
  } catch (const std::exception& error) {
    log_error("{}: cannot be unmounted first: {}", point.directory(), error.what());
  }
  if (point.is_connected()) wait_for_users(point, session, lifetime);
  return departure;
}

Status finish(Mount& mount, Lifetime& lifetime, End end) {
  std::unique_ptr<Departure> departure;
  if (end == End::lacks_memory)
    log_critical("{}: out of memory: the mount ends; all that was written goes into the log first", mount.point->directory());
  if (end == End::signalled || end == End::lacks_memory)
    departure = depart(*mount.point, *mount.session, lifetime);
  else if (!mount.point->is_connected())  // nobody serves any more: one that is alive is closed before it is detached
    mount.point->detach_dead();  // an aborted connection leaves a dead mount
  mount.fs->limit_wait_for_room();
  mount.server->stop();
  const Status unmounted = mount.fs->unmount();
  if (!unmounted.ok()) log_critical("unmounting failed: {}", unmounted.error().message());
  // Before anybody hears that the device is free: it may hold another filesystem a moment later.
  if (const Status released = mount.device->release(); !released.ok()) log_error("{}", released.error().message());
  mount.session->answer_destroy(unmounted.ok() ? 0 : unmounted.error().to_errno());
  mount.server.reset();
  mount.point->close();
  return unmounted;
}

Status open_log(const DaemonArguments& arguments, bool foreground) {
  return open_log(arguments.options, foreground, arguments.source, remote::absolute_name(arguments.directory));
}

Status run_foreground(const DaemonArguments& arguments) {
  TRY(open_log(arguments, true));
  Lifetime lifetime;
  const auto mount = TRY(begin(arguments, lifetime));
  tell(*mount, arguments.options);
  return finish(*mount, lifetime, wait_for_end(*mount, arguments.options, lifetime));
}

[[noreturn]] void run_child(const DaemonArguments& arguments, Background& background) {
  int code = 1;
  spdlog::set_level(spdlog::level::info);  // what is recovered is told where the mount was asked for
  {
    Lifetime lifetime;
    auto mount = begin(arguments, lifetime);
    Status ended = mount.ok() ? open_log(arguments, false) : Status(mount.error());
    if (ended.ok()) {
      tell(**mount, arguments.options);
      background.ready();
      ended = finish(**mount, lifetime, wait_for_end(**mount, arguments.options, lifetime));
      code = ended.ok() ? 0 : 1;
    } else {
      if (mount.ok()) (*mount)->fs->limit_wait_for_room();
      if (mount.ok()) (*mount)->server->stop();
      background.failed(ended.error());
    }
  }
  spdlog::shutdown();
  std::exit(code);
}

}  // namespace

Status run_daemon(const DaemonArguments& given) {
  DaemonArguments arguments = given;
  arguments.log = choose_log(arguments.options, arguments.foreground, remote::absolute_name(arguments.directory));
  if (arguments.foreground) return run_foreground(arguments);
  Background background = TRY(Background::start());
  if (background.is_parent()) return background.wait();
  run_child(arguments, background);
}

}  // namespace varve::daemon
