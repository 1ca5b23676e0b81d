#include "fuse/operations/snapshot_mounts.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "fs/snapshot_looks.h"

namespace varve::fuse {

namespace {

std::string device_of(const std::string& mount_point) {
  const auto mounted = control::find_mount(mount_point);
  return mounted && mounted->is_varve() ? mounted->device : "";
}

}  // namespace

SnapshotMounts::SnapshotMounts(fs::Filesystem& fs, const std::string& mount_point, const std::string& folder)
    : fs_(fs), device_(folder.empty() ? "" : device_of(mount_point)), below_("/" + folder + "/"),
      changes_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  if (device_.empty()) return;
  fs_.hold_snapshots([this] {
    std::vector<Serial> used;
    for (const Mounted& mounted : look()) used.push_back(mounted.snapshot);
    return used;
  });
}

SnapshotMounts::~SnapshotMounts() { fs_.hold_snapshots({}); }

// Since it was last asked.
bool SnapshotMounts::has_changed() {
  pollfd table{changes_.get(), POLLPRI, 0};
  const bool is_new = !std::exchange(was_read_, true);
  return ::poll(&table, 1, 0) != 0 || is_new || !changes_;
}

// Of the snapshot; empty: of none.
std::string SnapshotMounts::name_in(const std::string& root) const {
  if (!root.starts_with(below_)) return "";
  return root.substr(below_.size(), root.find('/', below_.size()) - below_.size());
}

// A mount of a mount has the name that the kernel knows, which may be an old one.
std::optional<Serial> SnapshotMounts::snapshot_of(const control::MountEntry& mounted) const {
  if (const auto same = known_.find(mounted.id); same != known_.end()) return same->second.snapshot;
  const std::string name = name_in(mounted.root);
  if (name.empty()) return std::nullopt;
  const auto copied = std::ranges::find_if(known_, [&](const auto& one) { return one.second.root == mounted.root; });
  if (copied != known_.end()) return copied->second.snapshot;
  const auto named = fs::find_snapshot(fs_, name);
  return named ? std::optional(Serial{named->serial}) : std::nullopt;
}

void SnapshotMounts::read() {
  Table found;
  for (const control::MountEntry& mounted : control::mounts_of(device_))
    if (const auto snapshot = snapshot_of(mounted)) found[mounted.id] = {*snapshot, mounted.root, mounted.directory};
  known_ = std::move(found);
}

std::vector<SnapshotMounts::Mounted> SnapshotMounts::look() {
  if (device_.empty()) return {};
  const Lock lock(mutex_);
  if (has_changed()) read();
  std::vector<Mounted> all;
  for (const auto& [id, mounted] : known_) all.push_back({mounted.snapshot, mounted.directory});
  return all;
}

}  // namespace varve::fuse
