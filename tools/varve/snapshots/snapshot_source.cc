#include "varve/snapshots/snapshot_source.h"

#include <sys/random.h>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <ostream>
#include <utility>

#include "base/clock.h"
#include "control/place.h"
#include "control/status_fields.h"
#include "format/snapshot.h"
#include "varve/snapshots/snapshot_choice.h"

namespace varve::tool {

namespace {

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

Error explained(const Error& why) {
  if (!why.is(Errc::no_space)) return why;
  return {why.code(), fmt::format("{}\n  It takes a snapshot of this moment. Delete files or snapshots first.", why.message())};
}

// A mount that writes nothing makes no snapshots. Unless it shows the past it shows what the image has, which can be read beside it.
bool shows_the_image(const Json& status) {
  const std::string options = "," + control::words_of(status, "mount.options") + ",";
  return control::flag_of(status, "mount.read_only") && control::words_of(status, "snapshot").empty() &&
         options.find(",norecovery,") == options.npos;
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
  if (chosen->name != which) err << fmt::format("varve: '{}', made {}\n", chosen->name, local_time(chosen->made));
  return chosen->name;
}

Status hold_if_it_fits(SnapshotSource& source, Serial snapshot, std::ostream& err) {
  const Status held = source.hold(snapshot);
  if (!held.fails_with(Errc::no_space)) return held;
  err << "varve: no space to hold the automatic snapshot: it may be given up before it is read to its end\n";
  return {};
}

Result<std::unique_ptr<SnapshotSource>> SnapshotSource::open(const std::string& path, bool wants_now) {
  const Volume::Use use = wants_now ? Volume::Use::trial : Volume::Use::looks;
  const auto of = [&](Volume volume) { return std::unique_ptr<SnapshotSource>(new SnapshotSource(std::move(volume), path)); };
  const control::Place place = TRY(control::find_place(path));
  if (place.is_dead) return control::daemon_gone(place);
  if (place.is_mounted()) {
    Volume mount = TRY(Volume::of_mount(place.directory));
    if (!wants_now || !shows_the_image(TRY(mount.status()))) return of(std::move(mount));
  }
  spdlog::set_level(spdlog::level::off);  // the output is for what was asked; errors come back by themselves
  return of(TRY(Volume::of_image(place.source, "varve", use)));
}

SnapshotSource::SnapshotSource(Volume volume, std::string place)
    : volume_(std::move(volume)), place_(volume_.is_mounted() ? std::move(place) : volume_.name()),
      ask_([this](const auto& question) { return volume_.compare(question); }), reader_(any_number()) {}

SnapshotSource::~SnapshotSource() {
  if (volume_.is_mounted()) (void)close();
}

Result<std::string> SnapshotSource::uuid() { return TRY(volume_.status()).value("uuid", ""); }

Result<Serial> SnapshotSource::serial_of(const std::string& name) {
  if (const auto found = TRY(volume_.find_snapshot(name))) return *found;
  return Error(Errc::not_found, fmt::format("{}: there is no snapshot '{}': see varve snapshot list", place_, name));
}

Result<bool> SnapshotSource::has(Serial serial) { return !TRY(volume_.find_snapshot(serial)).is_null(); }

Result<std::uint64_t> SnapshotSource::data_bytes(Serial serial) {
  const Json found = TRY(volume_.find_snapshot(serial));
  return found.is_null() ? 0 : found.value("data_bytes", std::uint64_t{0});
}

Status SnapshotSource::hold(Serial serial) {
  if (!volume_.is_mounted()) return {};
  const Json found = TRY(volume_.find_snapshot(serial));
  if (found.is_null() || !found.value("automatic", false)) return {};
  TRY(volume_.hold_snapshot(serial, reader_, kHoldSeconds));
  held_.push_back(serial);
  holders_.push_back(std::make_unique<Successor>([this, serial] { (void)volume_.hold_snapshot(serial, reader_, 0); },
                                                 [this, serial] { (void)volume_.hold_snapshot(serial, reader_, kHoldSeconds); }));
  return {};
}

bool SnapshotSource::hold_on() {
  constexpr std::uint64_t kForAnotherAttempt = 3600;
  holders_.clear();  // they would ask for less
  const auto held = std::exchange(held_, {});
  for (const Serial serial : held) (void)volume_.hold_snapshot(serial, reader_, kForAnotherAttempt);
  return !held.empty();
}

Status SnapshotSource::change_now(snapshots::SnapshotChange::Kind kind) { return volume_.change_snapshot({kind, now_, {}}); }

Result<Serial> SnapshotSource::now() {
  now_ = name_of_now();
  if (const Status made = change_now(snapshots::SnapshotChange::Kind::create); !made.ok()) {
    now_.clear();
    return volume_.is_mounted() ? explained(made.error()) : made.error();
  }
  if (volume_.is_mounted()) successor_ = std::make_unique<Successor>([this] { (void)change_now(snapshots::SnapshotChange::Kind::remove); });
  return serial_of(now_);
}

Result<Serial> SnapshotSource::newest() {
  TRY(volume_.checkpoint());
  return compare::kNewest;
}

Status SnapshotSource::forget_now() {
  if (now_.empty() || !volume_.is_mounted()) return {};
  const Status gone = change_now(snapshots::SnapshotChange::Kind::remove);
  now_.clear();
  successor_.reset();
  return gone;
}

Status SnapshotSource::close() {
  holders_.clear();
  for (const Serial serial : std::exchange(held_, {})) (void)volume_.hold_snapshot(serial, reader_, 0);
  const Status gone = forget_now();
  const Status closed = volume_.close();  // of an image nothing reaches the device
  return gone.ok() ? closed : gone;
}

}  // namespace varve::tool
