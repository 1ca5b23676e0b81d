#include "varve/observe/place_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/types.h"
#include "control/mount_table.h"
#include "daemon/log_output.h"
#include "remote/network_name.h"

namespace varve::tool {

std::uint64_t length_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  const bool is_storage = file && ::fstat(file.get(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
  const off_t end = is_storage ? ::lseek(file.get(), 0, SEEK_END) : 0;
  return end > 0 ? static_cast<std::uint64_t>(end) : 0;
}

std::uint64_t unused_bytes(const control::Place& place, std::uint64_t device_blocks, std::uint64_t segment_blocks) {
  if (device_blocks == 0 || remote::is_network_name(place.source)) return 0;
  const std::uint64_t blocks = length_of(place.source) >> kBlockShift;
  return blocks >= device_blocks + segment_blocks ? (blocks - device_blocks) << kBlockShift : 0;
}

std::uint64_t missing_bytes(const control::Place& place, std::uint64_t device_blocks) {
  struct stat status {};
  if (!place.is_mounted() || remote::is_network_name(place.source)) return 0;
  if (::stat(place.source.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const std::uint64_t has = static_cast<std::uint64_t>(status.st_size), needs = device_blocks << kBlockShift;
  return has < needs ? needs - has : 0;
}

void add_presence(Json& status, control::Presence presence, const std::string& holder) {
  if (presence == control::Presence::nobody) return;
  const bool lives = presence == control::Presence::lives;
  status["elsewhere"] = {{"holder", holder}, {"lives", lives ? Json(true) : Json(nullptr)}};
  if (lives) status["state"] = "in use by " + holder;
  else status["state"] = fmt::format("not mounted here; {}, has not given it back: it may still be in use there", holder);
}

void add_place_facts(Json& status, const control::Place& place) {
  Json& space = status["space"];
  const auto blocks = [&space](const char* key) { return space.value(key, std::uint64_t{0}); };
  if (const auto unused = unused_bytes(place, blocks("device_blocks"), blocks("segment_blocks"))) space["unused_device_bytes"] = unused;
  if (const auto missing = missing_bytes(place, blocks("device_blocks"))) space["missing_device_bytes"] = missing;
  if (place.is_mounted() && !place.is_dead && status.contains("/mount/mount_point"_json_pointer)) {
    Json& mount = status["mount"];
    // The daemon's own may have been unmounted, while a bind mount shows the filesystem, or belong to another namespace.
    const auto there = control::find_mount(mount.value("mount_point", ""));
    if (!there || !there->is_varve()) mount["mount_point"] = place.directory;
  }
  if (!place.is_dead) return;
  status["state"] = control::daemon_gone(place).message();
  status["mount"] = {{"mount_point", place.directory}, {"log", daemon::former_log(place.directory)}};
}

}  // namespace varve::tool
