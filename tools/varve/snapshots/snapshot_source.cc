#include "varve/snapshots/snapshot_source.h"

#include <sys/random.h>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <ostream>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "compare/answer.h"
#include "control/place.h"
#include "control/request_json.h"
#include "format/snapshot.h"
#include "fs/filesystem.h"
#include "io/overlay_device.h"
#include "lease/leased_device.h"
#include "varve/snapshots/snapshot_choice.h"
#include "varve/snapshots/successor.h"
#include "varve/volume/mount_client.h"

namespace varve::tool {

namespace {

Error no_such_snapshot(const std::string& place, const std::string& name) {
  return {Errc::not_found, fmt::format("{}: there is no snapshot '{}': see varve snapshot list", place, name)};
}

// Longer than a holder waits before it asks again, also on a busy machine.
constexpr std::uint64_t kHoldSeconds = 60;

std::uint64_t any_number() {
  std::uint64_t any = 0;
  (void)::getrandom(&any, sizeof any, 0);
  return any;
}

// It is seen by others for as long as this tool runs: the name says where it comes from.
std::string name_of_now() {
  return format::passing_name(static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(any_number()));
}

class MountedSource final : public SnapshotSource {
 public:
  explicit MountedSource(MountClient client, std::string place)
      : client_(std::move(client)), place_(std::move(place)), ask_([this](const auto& question) { return client_.ask(question); }) {}
  ~MountedSource() override { (void)close(); }

  const compare::Ask& ask() override { return ask_; }

  Result<std::string> uuid() override {
    const auto status = TRY(client_.status());
    return status.value("uuid", "");
  }

  Result<Serial> serial_of(const std::string& name) override {
    if (const auto found = TRY(client_.find_snapshot(name))) return *found;
    return no_such_snapshot(place_, name);
  }

  Result<Json> list() override { return client_.snapshots(); }

  Result<bool> has(Serial serial) override {
    const auto state = TRY(client_.snapshots());
    for (const auto& one : state.value("snapshots", Json::array()))
      if (one.value("serial", std::uint64_t{0}) == serial.v) return true;
    return false;
  }

  Result<std::uint64_t> data_bytes(Serial serial) override {
    const auto state = TRY(client_.snapshots());
    for (const auto& one : state.value("snapshots", Json::array()))
      if (one.value("serial", std::uint64_t{0}) == serial.v) return one.value("data_bytes", std::uint64_t{0});
    return std::uint64_t{0};
  }

  Status hold(Serial serial) override {
    if (!TRY(is_automatic(serial))) return {};
    TRY(client_.hold_snapshot(serial, reader_, kHoldSeconds));
    held_.push_back(serial);
    holders_.push_back(std::make_unique<Successor>([this, serial] { (void)client_.hold_snapshot(serial, reader_, 0); },
                                                   [this, serial] { (void)client_.hold_snapshot(serial, reader_, kHoldSeconds); }));
    return {};
  }

  bool hold_on() override {
    constexpr std::uint64_t kForAnotherAttempt = 3600;
    holders_.clear();  // they would ask for less
    const auto held = std::exchange(held_, {});
    for (const Serial serial : held) (void)client_.hold_snapshot(serial, reader_, kForAnotherAttempt);
    return !held.empty();
  }

  Result<Serial> now() override {
    now_ = name_of_now();
    if (const Status made = change(snapshots::SnapshotChange::Kind::create); !made.ok()) {
      now_.clear();
      return explained(made.error());
    }
    successor_ = std::make_unique<Successor>([this] { (void)change(snapshots::SnapshotChange::Kind::remove); });
    return serial_of(now_);
  }

  Result<Serial> newest() override {
    TRY(client_.checkpoint());
    return compare::kNewest;
  }

  Status close() override {
    holders_.clear();
    for (const Serial serial : std::exchange(held_, {})) (void)client_.hold_snapshot(serial, reader_, 0);
    return forget_now();
  }

  Status forget_now() override {
    if (now_.empty()) return {};
    const Status gone = change(snapshots::SnapshotChange::Kind::remove);
    now_.clear();
    successor_.reset();
    return gone;
  }

 private:
  static Error explained(const Error& why) {
    if (!why.is(Errc::no_space)) return why;
    return {why.code(), fmt::format("{}\n  It takes a snapshot of this moment. Delete files or snapshots first.", why.message())};
  }
  Result<bool> is_automatic(Serial serial) {
    const auto state = TRY(client_.snapshots());
    for (const auto& one : state.value("snapshots", Json::array()))
      if (one.value("serial", std::uint64_t{0}) == serial.v) return one.value("automatic", false);
    return false;
  }
  Status change(snapshots::SnapshotChange::Kind kind) { return client_.change_snapshot({kind, now_, {}}); }

  MountClient client_;
  const std::string place_;
  const compare::Ask ask_;
  std::string now_;  // name of the snapshot that goes again
  std::unique_ptr<Successor> successor_;
  const std::uint64_t reader_ = any_number();
  std::vector<Serial> held_;
  std::vector<std::unique_ptr<Successor>> holders_;  // one for each of these
};

class ImageSource final : public SnapshotSource {
 public:
  Status open(const std::string& path, bool wants_now) {
    device_ = TRY(lease::LeasedDevice::open(path, {.access = io::Access::read_only}, {"varve", ""}));
    overlay_ = std::make_unique<io::OverlayDevice>(*device_);
    fs::Options options;
    options.read_only = !wants_now;
    options.cleaner = false;
    spdlog::set_level(spdlog::level::off);  // the output is for what was asked; errors come back by themselves
    filesystem_ = TRY(fs::Filesystem::mount(*overlay_, options));
    ask_ = compare::asking(*filesystem_);
    return {};
  }

  const compare::Ask& ask() override { return ask_; }

  Result<std::string> uuid() override { return filesystem_->status().uuid; }

  Result<Serial> serial_of(const std::string& name) override {
    for (const fs::SnapshotFacts& one : filesystem_->snapshots().snapshots)
      if (one.name == name) return Serial{one.serial};
    return no_such_snapshot(device_->name(), name);
  }

  Result<Json> list() override { return control::to_json(filesystem_->snapshots()); }

  Result<bool> has(Serial serial) override {
    for (const fs::SnapshotFacts& one : filesystem_->snapshots().snapshots)
      if (Serial{one.serial} == serial) return true;
    return false;
  }

  Result<std::uint64_t> data_bytes(Serial serial) override {
    for (const fs::SnapshotFacts& one : filesystem_->snapshots().snapshots)
      if (Serial{one.serial} == serial) return one.data_blocks << kBlockShift;
    return std::uint64_t{0};
  }

  Result<Serial> now() override {
    const std::string name = name_of_now();
    fs::Operation operation(filesystem_->engine(), {});
    const snapshots::SnapshotChange creation{snapshots::SnapshotChange::Kind::create, name, {}};
    TRY(fs::block_on(operation, [&] { return filesystem_->change_snapshot(operation, creation); }));
    return serial_of(name);
  }

  Result<Serial> newest() override {
    fs::Operation operation(filesystem_->engine(), {});
    TRY(fs::block_on(operation, [&] { return filesystem_->checkpoint(operation); }));
    return compare::kNewest;
  }

  Status forget_now() override { return {}; }

  Status close() override { return filesystem_->unmount(); }  // nothing of it reaches the device

 private:
  std::unique_ptr<lease::LeasedDevice> device_;
  std::unique_ptr<io::OverlayDevice> overlay_;
  std::unique_ptr<fs::Filesystem> filesystem_;
  compare::Ask ask_;
};

// A mount that writes nothing makes no snapshots. Unless it shows the past it shows what the image has, which can be read beside it.
bool shows_the_image(const Json& mount) {
  const std::string options = "," + mount.value("options", "") + ",";
  return mount.value("read_only", false) && options.find(",snapshot=") == options.npos && options.find(",norecovery,") == options.npos;
}

Result<std::unique_ptr<SnapshotSource>> open_image(const std::string& path, bool wants_now) {
  auto image = std::make_unique<ImageSource>();
  TRY(image->open(path, wants_now));
  return std::unique_ptr<SnapshotSource>(std::move(image));
}

}  // namespace

Result<Serial> now_or_newest(SnapshotSource& source, std::ostream& err) {
  auto now = source.now();
  if (!now.fails_with(Errc::no_space)) return now;
  err << "varve: no space to keep the state of this moment: what others change meanwhile may be missed\n";
  return source.newest();
}

Result<std::string> name_of_snapshot(SnapshotSource& source, const std::string& path, const std::string& which, std::ostream& err) {
  const auto chosen = choose_snapshot(TRY(source.list()), which, Clock::system().now().seconds);
  if (!chosen.ok()) return Error(chosen.error().code(), fmt::format("{}: {}", path, chosen.error().message()));
  if (chosen->name != which) err << fmt::format("varve: from '{}', made {}\n", chosen->name, local_time(chosen->made));
  return chosen->name;
}

Status hold_if_it_fits(SnapshotSource& source, Serial snapshot, std::ostream& err) {
  const Status held = source.hold(snapshot);
  if (!held.fails_with(Errc::no_space)) return held;
  err << "varve: no space to hold the automatic snapshot: it may be given up before it is read to its end\n";
  return {};
}

Result<std::unique_ptr<SnapshotSource>> SnapshotSource::open(const std::string& path, bool wants_now) {
  const control::Place place = TRY(control::find_place(path));
  if (place.is_dead) return control::daemon_gone(place);
  if (place.is_mounted()) {
    MountClient client = TRY(MountClient::open(place.directory));
    TRY(client.snapshots());  // other filesystems may know the ioctl
    if (wants_now && shows_the_image(TRY(client.status())["mount"])) return open_image(place.source, wants_now);
    return std::unique_ptr<SnapshotSource>(std::make_unique<MountedSource>(std::move(client), path));
  }
  return open_image(place.source, wants_now);
}

}  // namespace varve::tool
