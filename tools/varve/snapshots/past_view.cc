#include "varve/snapshots/past_view.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/counted.h"
#include "base/errc.h"
#include "control/place.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace files = std::filesystem;

Result<std::string> place_of(const std::string& path) {
  std::error_code failure;
  files::path wanted = files::absolute(path, failure).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  const files::path parent = files::weakly_canonical(wanted.parent_path(), failure);
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", path, failure.message()));
  return (parent / wanted.filename()).string();
}

Result<std::string> mount_of(const std::string& place) {
  for (files::path at = place;; at = at.parent_path()) {
    std::error_code failure;
    if (!files::is_directory(files::symlink_status(at, failure))) {
      if (at == at.parent_path()) return Error(Errc::not_found, fmt::format("{}: there is no such directory", place));
      continue;
    }
    return control::find_mounted(at.string());
  }
}

Result<PastView> PastView::open(const std::string& path) {
  PastView view;
  view.place_ = TRY(place_of(path));
  const std::string mount = TRY(mount_of(view.place_));
  Volume client = TRY(Volume::of_mount(mount));
  const Json state = TRY(client.snapshots());
  const std::string name = TRY(client.status())["mount"].value("snapshots_dir", "");
  if (name.empty())
    return Error(Errc::unsupported, fmt::format("{}: this mount shows no snapshots: mount it without snapshots_dir=none", mount));
  const std::string top = mount == "/" ? "" : mount;
  view.folder_ = top + "/" + name;
  view.inside_ = view.place_.substr(top.size());
  view.snapshots_ = all_snapshots(state);
  return view;
}

std::string PastView::in(const ChosenSnapshot& snapshot) const { return folder_ + "/" + snapshot.name + inside_; }

bool PastView::is_there(const ChosenSnapshot& snapshot) const {
  struct stat status {};
  return ::lstat((folder_ + "/" + snapshot.name).c_str(), &status) == 0;
}

Status look_on(Steps& steps, std::size_t looked, std::size_t all) {
  const auto text = [&] { return fmt::format("{} of {} looked through", looked, counted(all, "snapshot")); };
  return steps.next(text, ProgressMeter::share_of(looked, all));
}

}  // namespace varve::tool
