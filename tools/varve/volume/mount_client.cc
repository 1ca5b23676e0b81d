#include "varve/volume/mount_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errc.h"
#include "base/json_text.h"
#include "control/kept_page.h"
#include "control/patience.h"
#include "format/snapshot.h"

namespace varve::tool {

namespace {

std::uint32_t command_of(snapshots::SnapshotChange::Kind kind) {
  switch (kind) {
    case snapshots::SnapshotChange::Kind::create: return control::SnapshotCommand::kCreate;
    case snapshots::SnapshotChange::Kind::rename: return control::SnapshotCommand::kRename;
    case snapshots::SnapshotChange::Kind::remove: return control::SnapshotCommand::kRemove;
  }
  return 0;
}

}  // namespace

Result<MountClient> MountClient::open(const std::string& directory) {
  const control::Patience patience(directory);
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) return MountClient(fd, directory);
  if (errno == ENOTCONN || errno == ECONNABORTED)  // Linux 7.3 says the second one at first
    return Error(Errc::io, fmt::format("{}: its daemon is gone: unmount it, or mount again", directory));
  return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
}

MountClient::MountClient(MountClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), directory_(std::move(other.directory_)) {}

MountClient::~MountClient() {
  if (fd_ >= 0) ::close(fd_);
}

Error MountClient::error(const char* action) const {
  if (errno == ENOTTY || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
    return Error(Errc::unsupported, fmt::format("{}: not a mounted Varve filesystem", directory_));
  if (errno == EPERM)
    return Error(Errc::not_permitted,
                 fmt::format("{}: this is only for root (with CAP_SYS_ADMIN) and the user who mounted it", directory_));
  return Error(errc_from_errno(errno), fmt::format("{}: {}: {}", directory_, action, errno_text()));
}

Result<Json> MountClient::status() { return document(control::kStatusIoctl, "status"); }

Result<Json> MountClient::scrub_report() { return document(control::kScrubReportIoctl, "scrub"); }

Status MountClient::scrub(const control::ScrubCommand& command) {
  control::ScrubCommand copy = command;
  if (::ioctl(fd_, control::kScrubIoctl, &copy) != 0) return error("scrub");
  return {};
}

Result<Json> MountClient::clean_report() { return document(control::kCleanReportIoctl, "clean"); }

Status MountClient::clean(const Json& request) {
  control::CleanText text;
  const std::string words = json_text(request);
  if (words.size() >= sizeof text.text) return Error(Errc::invalid, "too many files at once: name their directories");
  words.copy(text.text, words.size());
  if (::ioctl(fd_, control::kCleanIoctl, &text) != 0) return error("clean");
  text.text[sizeof text.text - 1] = 0;
  if (text.text[0]) return Error(Errc::invalid, fmt::format("{}: {}", directory_, text.text));
  return {};
}

Result<Json> MountClient::history() { return document(control::kHistoryIoctl, "history"); }

Status MountClient::stop_clean() {
  if (::ioctl(fd_, control::kCleanStopIoctl) != 0) return error("clean");
  return {};
}

Result<Json> MountClient::resize_report() { return document(control::kResizeReportIoctl, "resize"); }

Status MountClient::resize(const Json& request) {
  control::TuneText text;
  json_text(request).copy(text.text, sizeof text.text - 1);
  if (::ioctl(fd_, control::kResizeIoctl, &text) != 0) return error("resize");
  text.text[sizeof text.text - 1] = 0;
  if (text.text[0]) return Error(Errc::invalid, fmt::format("{}: {}", directory_, text.text));
  return {};
}

Status MountClient::stop_resize() {
  if (::ioctl(fd_, control::kResizeStopIoctl) != 0) return error("resize");
  return {};
}

Result<Json> MountClient::snapshots() { return document(control::kSnapshotsIoctl, "snapshot"); }

Result<std::optional<Serial>> MountClient::find_snapshot(const std::string& name) {
  const auto state = TRY(snapshots());
  for (const auto& one : state.value("snapshots", Json::array()))
    if (one.value("name", "") == name) return std::optional(Serial{one.value("serial", std::uint64_t{0})});
  return std::optional<Serial>();
}

Status MountClient::change_snapshot(const snapshots::SnapshotChange& change) {
  control::SnapshotCommand command;
  if (change.name.size() >= sizeof command.name || change.new_name.size() >= sizeof command.new_name)
    return format::check_snapshot_name(change.name.size() > change.new_name.size() ? change.name : change.new_name);
  command.command = command_of(change.kind);
  change.name.copy(command.name, change.name.size());
  change.new_name.copy(command.new_name, change.new_name.size());
  if (::ioctl(fd_, control::kSnapshotIoctl, &command) != 0) return error("snapshot");
  command.answer[sizeof command.answer - 1] = 0;
  if (!command.answer[0]) return {};
  const Errc code = command.error ? errc_from_errno(static_cast<int>(command.error)) : Errc::invalid;
  return Error(code, fmt::format("{}: {}", directory_, command.answer));
}

Result<compare::Answer> MountClient::ask(const compare::Question& question) {
  control::KeptPage page = control::to_page(question);
  if (::ioctl(fd_, control::kKeptIoctl, &page) == 0) return control::answer_from(page);
  if (errno == ENOTTY)
    return Error(Errc::unsupported, fmt::format("{}: the program that has mounted it is older than this one", directory_));
  if (errno == ESTALE) return Error(Errc::stale, fmt::format("{}: a snapshot was deleted meanwhile", directory_));
  return error("snapshot");
}

Status MountClient::hold_snapshot(Serial snapshot, std::uint64_t reader, std::uint64_t seconds) {
  control::SnapshotHold hold{snapshot.v, reader, seconds};
  if (::ioctl(fd_, control::kSnapshotHoldIoctl, &hold) == 0 || errno == ENOTTY) return {};
  if (errno == ESTALE) return Error(Errc::stale, fmt::format("{}: a snapshot was deleted meanwhile", directory_));
  if (errno == ENOSPC)
    return Error(Errc::no_space, fmt::format("{}: no space to hold the automatic snapshot while it is read: remove something first",
                                             directory_));
  return error("snapshot");
}

Result<Json> MountClient::document(unsigned long number, const char* what) {
  const control::Patience patience(directory_);
  control::StatusPage page;
  std::string text;
  do {
    page.offset = static_cast<std::uint32_t>(text.size());
    if (::ioctl(fd_, number, &page) != 0) return error(what);
    if (page.offset != text.size() || page.total < page.offset)
      return Error(Errc::corrupt, "the daemon's answer makes no sense");
    text.append(page.text, std::min<std::size_t>(sizeof page.text, page.total - page.offset));
  } while (text.size() < page.total);
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error(Errc::corrupt, "the daemon's answer makes no sense");
  return json;
}

Status MountClient::checkpoint() {
  if (::ioctl(fd_, control::kCheckpointIoctl) != 0) return error("checkpoint");
  return {};
}

Status MountClient::tune(const std::string& setting) {
  control::TuneText text;
  if (setting.find('=') == setting.npos || setting.size() >= sizeof text.text)
    return Error(Errc::invalid, fmt::format("'{:.100}': must be setting=value, as policy=greedy", setting));
  setting.copy(text.text, setting.size());
  if (::ioctl(fd_, control::kTuneIoctl, &text) != 0) return error("tune");
  text.text[sizeof text.text - 1] = 0;
  if (text.text[0]) return Error(Errc::invalid, text.text);
  return {};
}

Result<std::uint64_t> MountClient::trim(std::uint64_t start, std::uint64_t length) {
  fstrim_range range{start, length, 0};
  if (::ioctl(fd_, FITRIM, &range) != 0) return error("trim");
  return range.len;
}

Result<Json> mount_status(const std::string& directory) {
  MountClient client = TRY(MountClient::open(directory));
  return client.status();
}

}  // namespace varve::tool
