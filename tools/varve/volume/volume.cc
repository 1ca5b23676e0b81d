#include "varve/volume/volume.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"
#include "base/utf8.h"
#include "control/control.h"
#include "control/patience.h"
#include "format/snapshot.h"
#include "fs/filesystem.h"
#include "io/overlay_device.h"
#include "lease/leased_device.h"
#include "varve/volume/older_daemon.h"

namespace varve::tool {

namespace {

Result<Descriptor> open_directory(const std::string& directory) {
  const control::Patience patience(directory);
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) return opened;
  if (errno == ENOTCONN || errno == ECONNABORTED)  // Linux 7.3 says the second one at first
    return Error(Errc::io, fmt::format("{}: its daemon is gone: unmount it, or mount again", directory));
  return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
}

// A request that anyone may make is answered at once, unless the daemon is stopped. Others may take their time.
std::optional<control::Patience> patience_for(const control::Request& request, const std::string& directory) {
  const auto command = control::find_command(request.ask);
  if (!command.ok() || (*command)->right != control::Right::anyone) return std::nullopt;
  return std::optional<control::Patience>(std::in_place, directory);
}

Result<control::Answer> ask_daemon(int file, const control::Request& request) {
  const std::string asked = TRY(control::to_text(request));
  control::Message message;
  if (asked.size() > sizeof message.room) return Error(Errc::invalid, "too many files at once: name their directories");
  asked.copy(message.room, asked.size());
  message.total = static_cast<std::uint32_t>(asked.size());
  std::string text;
  std::size_t json = 0;
  do {
    if (::ioctl(file, control::kControlIoctl, &message) != 0) return ask_older(file, request, errno);
    if (text.empty()) json = message.json;
    if (message.offset != text.size() || message.total <= message.offset || json > message.total)
      return Error(Errc::corrupt, "the daemon's answer makes no sense");
    text.append(message.room, std::min<std::size_t>(sizeof message.room, message.total - message.offset));
    message.offset = static_cast<std::uint32_t>(text.size());
  } while (text.size() < message.total);
  return control::answer_from(std::string_view(text).substr(0, json), std::as_bytes(std::span(text).subspan(json)));
}

class MountSide final : public Volume::Side {
 public:
  // `file`: kept open; none: it is opened for each question.
  explicit MountSide(std::string directory, Descriptor file = Descriptor()) : directory_(std::move(directory)), file_(std::move(file)) {}

  Result<control::Answer> ask(const control::Request& request) override {
    if (file_) return ask_by(file_.get(), request);
    const Descriptor file = TRY(open_directory(directory_));
    return ask_by(file.get(), request);
  }
  Result<Ino> find(const std::string& path) override {
    const auto failed = [](const std::string& name) { return Error(errc_from_errno(errno), fmt::format("{}: {}", name, errno_text())); };
    struct stat mount {}, file {};
    if (::stat(directory_.c_str(), &mount) != 0) return failed(directory_);
    if (::lstat(path.c_str(), &file) != 0) return failed(path);
    if (file.st_dev != mount.st_dev) return Error(Errc::invalid, fmt::format("{}: not in the filesystem at {}", path, directory_));
    if (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)) return Ino{file.st_ino};
    return Error(Errc::invalid, fmt::format("{}: neither a file nor a directory", path));
  }

 private:
  Result<control::Answer> ask_by(int file, const control::Request& request) {
    const auto patience = patience_for(request, directory_);
    return ask_daemon(file, request);
  }

  const std::string directory_;
  const Descriptor file_;
};

// A filesystem that the tool mounts for itself. Nothing cleans it, so that nothing happens but what is asked for.
class ImageSide final : public Volume::Side {
 public:
  Status open(const std::string& path, const std::string& program, Volume::Use use) {
    const bool writes = use == Volume::Use::changes;
    device_ = TRY(lease::LeasedDevice::open(path, {.access = writes ? io::Access::read_write : io::Access::read_only}, {program, ""}));
    if (use == Volume::Use::trial) overlay_ = std::make_unique<io::OverlayDevice>(*device_);
    fs::Options options;
    options.read_only = use == Volume::Use::looks;
    options.cleaner = false;
    filesystem_ = TRY(fs::Filesystem::mount(overlay_ ? static_cast<io::BlockDevice&>(*overlay_) : *device_, options));
    return {};
  }
  const std::string& name() const { return device_->name(); }

  Result<control::Answer> ask(const control::Request& request) override { return control::answer(*filesystem_, request); }
  Status close() override {
    TRY(filesystem_->unmount());
    return overlay_ ? Status() : device_->release();
  }
  Result<Ino> find(const std::string& path) override {
    Ino at = kRootIno;
    for (std::size_t from = 0; from < path.size();) {
      const std::size_t to = std::min(path.find('/', from), path.size());
      const std::string name = path.substr(from, to - from);
      from = to + 1;
      if (name.empty() || name == ".") continue;
      fs::Operation operation(filesystem_->operations(), {});
      const auto found = fs::block_on(operation, [&] { return filesystem_->lookup(operation, at, name); });
      if (!found.ok()) return Error(found.error().code(), fmt::format("{}: {}: {}", device_->name(), path, found.error().message()));
      at = found->ino;
    }
    return at;
  }

 private:
  std::unique_ptr<lease::LeasedDevice> device_;
  std::unique_ptr<io::OverlayDevice> overlay_;
  std::unique_ptr<fs::Filesystem> filesystem_;
};

}  // namespace

Result<Volume> Volume::open(const std::string& path, const std::string& program, Use use) {
  return open(TRY(control::find_place(path)), program, use);
}

Result<Volume> Volume::open(const control::Place& place, const std::string& program, Use use) {
  if (place.is_dead) return control::daemon_gone(place);
  if (place.is_mounted()) return Volume(std::make_unique<MountSide>(place.directory), place.directory, true);
  return of_image(place.source, program, use);
}

Result<Volume> Volume::of_image(const std::string& device, const std::string& program, Use use) {
  auto image = std::make_unique<ImageSide>();
  TRY(image->open(device, program, use));
  const std::string name = image->name();
  return Volume(std::move(image), name, false);
}

Result<Volume> Volume::of_mount(const std::string& directory) {
  return Volume(std::make_unique<MountSide>(directory, TRY(open_directory(directory))), directory, true);
}

Result<control::Answer> Volume::ask(const control::Request& request) {
  auto answer = side_->ask(request);
  if (answer.ok()) return answer;
  const Error& why = answer.error();
  const bool is_said = why.message().starts_with(name_) || (request.ask == "tune" && !why.is(Errc::not_permitted));  // names its setting
  return is_said ? why : Error(why.code(), fmt::format("{}: {}", name_, why.message()));
}

Result<Json> Volume::ask(const std::string& what, Json arguments) { return TRY(ask(control::Request{what, std::move(arguments)})).json; }

Status Volume::tell(const std::string& what, Json arguments) {
  TRY(ask(what, std::move(arguments)));
  return {};
}

Result<std::optional<Serial>> Volume::find_snapshot(const std::string& name) {
  const auto state = TRY(snapshots());
  for (const auto& one : state.value("snapshots", Json::array()))
    if (one.value("name", "") == name) return std::optional(Serial{one.value("serial", std::uint64_t{0})});
  return std::optional<Serial>();
}

Result<Json> Volume::find_snapshot(Serial serial) {
  const auto state = TRY(snapshots());
  for (const auto& one : state.value("snapshots", Json::array()))
    if (one.value("serial", std::uint64_t{0}) == serial.v) return one;
  return Json();
}

Status Volume::change_snapshot(const snapshots::SnapshotChange& change) {
  const std::string& fresh = change.kind == snapshots::SnapshotChange::Kind::rename ? change.new_name : change.name;
  if (!is_printable(fresh) && change.kind != snapshots::SnapshotChange::Kind::remove)  // JSON has no other text
    return Error(Errc::invalid, fmt::format("{}: {}", name_, format::check_snapshot_name(fresh).error().message()));
  switch (change.kind) {
    case snapshots::SnapshotChange::Kind::create: return tell("snapshot_create", {{"name", change.name}});
    case snapshots::SnapshotChange::Kind::rename: return tell("snapshot_rename", {{"name", change.name}, {"new_name", change.new_name}});
    case snapshots::SnapshotChange::Kind::remove: return tell("snapshot_remove", {{"name", change.name}});
  }
  return Errc::invalid;
}

Status Volume::hold_snapshot(Serial snapshot, std::uint64_t reader, std::uint64_t seconds) {
  return tell("snapshot_hold", {{"snapshot", snapshot.v}, {"reader", reader}, {"seconds", seconds}});
}

Result<compare::Answer> Volume::compare(const compare::Question& question) {
  return control::compared(TRY(ask(control::to_request(question))));
}

Status Volume::tune(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == setting.npos || setting.size() >= 4096)
    return Error(Errc::invalid, fmt::format("'{:.100}': must be setting=value, as policy=greedy", setting));
  return tell("tune", {{"setting", setting.substr(0, equals)}, {"value", setting.substr(equals + 1)}});
}

Result<std::uint64_t> Volume::trim(std::uint64_t start, std::uint64_t length) {
  const Descriptor file = TRY(open_directory(name_));
  fstrim_range range{start, length, 0};
  if (::ioctl(file.get(), FITRIM, &range) == 0) return range.len;
  const Error why = refused(errno, "trim");
  return Error(why.code(), fmt::format("{}: {}", name_, why.message()));
}

Result<Json> mount_status(const std::string& directory) { return TRY(Volume::of_mount(directory)).status(); }

}  // namespace varve::tool
