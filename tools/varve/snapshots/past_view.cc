#include "varve/snapshots/past_view.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/counted.h"
#include "base/errc.h"
#include "base/utf8.h"
#include "control/status_fields.h"
#include "send/host_file.h"
#include "varve/volume/snapshots_folder.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

using Found = Result<std::optional<struct stat>>;

Error cannot_see(const std::string& path) { return {errc_from_errno(errno), fmt::format("{}: {}", printable(path), errno_text())}; }

// Through no link: that of a snapshot may lead to what is there now.
Found status_below(const Descriptor& directory, const std::string& path, const std::string& shown) {
  struct stat status {};
  const Descriptor file(send::open_below(directory.get(), path, O_PATH));
  if (file && ::fstat(file.get(), &status) == 0) return std::optional(status);
  constexpr int kAbsent[] = {ENOENT, ENOTDIR, ELOOP, ESTALE, EXDEV};
  if (std::ranges::find(kAbsent, errno) != std::end(kAbsent)) return std::optional<struct stat>();
  return cannot_see(shown);
}

std::string path_below(const std::string& directory, const std::string& inside) {
  const std::string top = directory == "/" ? "" : directory;
  return inside == "/" ? directory : top + inside;
}

// The daemon shows none: asked to, or since the mount shows the past itself.
Error shows_none(const std::string& whole, const Json& status) {
  const char* const advice = control::words_of(status, "snapshot").empty() ? "mount it without snapshots_dir=none"
                                                                           : "it is one itself: ask where the filesystem in use is mounted";
  return {Errc::unsupported, fmt::format("{}: this mount shows no snapshots: {}", whole, advice)};
}

}  // namespace

Status PastView::open_folder(const std::string& whole) {
  Volume client = TRY(Volume::of_mount(whole));
  snapshots_ = all_snapshots(TRY(client.snapshots()));
  const Json told = TRY(client.status());
  const std::string name = control::words_of(told, "mount.snapshots_dir");
  if (name.empty()) return shows_none(whole, told);
  folder_ = path_below(whole, "/" + name);
  root_ = Descriptor(::open(whole.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  kept_ = Descriptor(::open(folder_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!root_) return cannot_see(whole);
  if (!kept_ || ::fstat(kept_.get(), &status) != 0) return cannot_see(folder_);
  return check_shows_snapshots(folder_, status);
}

Result<PastView> PastView::open(const std::string& path, Kind kind) {
  PastView view;
  const NamedPath named = TRY(named_path(path));
  TRY(view.open_folder(TRY(named.whole())));
  view.place_ = named.at.place;
  view.inside_ = named.at.path;
  if (named.direct != view.inside_ && view.some_snapshot_has(named.direct, kind)) {
    view.is_direct_ = true;
    view.inside_ = named.direct;
    view.place_ = path_below(named.at.whole, named.direct);
  } else if (kind == Kind::directory && TRY(view.is_link_now()) && !view.some_snapshot_has(view.inside_, kind)) {
    return open(TRY(followed_path(path)).at.place, kind);
  }
  return view;
}

bool PastView::some_snapshot_has(const std::string& inside, Kind kind) const {
  return std::ranges::any_of(snapshots_, [&](const ChosenSnapshot& one) {
    const auto found = status_below(kept_, one.name + path_below("", inside), folder_);
    return found.ok() && *found && (kind == Kind::any || S_ISDIR((*found)->st_mode));
  });
}

Result<bool> PastView::is_link_now() const {
  const auto now = TRY(status_now());
  return now && S_ISLNK(now->st_mode);
}

std::string PastView::in(const ChosenSnapshot& snapshot) const { return path_below(folder_ + "/" + snapshot.name, inside_); }

bool PastView::is_there(const ChosenSnapshot& snapshot) const {
  const auto found = status_below(kept_, snapshot.name, folder_);
  return found.ok() && *found;
}

Found PastView::status_now() const {
  struct stat status {};
  if (is_direct_) return status_below(root_, send::relative(inside_), place_);
  if (::lstat(place_.c_str(), &status) == 0) return std::optional(status);
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<struct stat>();
  return cannot_see(place_);
}

Found PastView::status_in(const ChosenSnapshot& snapshot) const {
  return status_below(kept_, snapshot.name + path_below("", inside_), in(snapshot));
}

void Unseen::add(const ChosenSnapshot& snapshot, const Error& why) {
  all_.push_back({{"snapshot", snapshot.name}, {"error", why.message()}});
  last_ = why;
}

Status Unseen::status(const std::string& place) const {
  if (!last_) return {};
  const std::string more = all_.size() == 1 ? "" : fmt::format(" (and in {} more)", all_.size() - 1);
  return Error(last_->code(), fmt::format("{}: cannot be looked at in the snapshot '{}'{}: {}", printable(place),
                                          all_.back().value("snapshot", ""), more, last_->message()));
}

Status look_on(Steps& steps, std::size_t looked, std::size_t all) {
  const auto text = [&] { return fmt::format("{} of {} looked through", looked, counted(all, "snapshot")); };
  return steps.next(text, ProgressMeter::share_of(looked, all));
}

}  // namespace varve::tool
