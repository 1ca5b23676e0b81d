// What the user of a tool has named: a mounted filesystem, or an image or device that nobody has mounted. Any name will do:
// mount point, a directory below it, image, device, UUID=... or LABEL=....
#pragma once

#include <string>

#include "base/result.h"

namespace varve::control {

struct Place {
  std::string source;     // device or image, absolute
  std::string directory;  // where it is mounted, all of it if possible; empty: nowhere
  bool is_dead = false;   // the mount is there, its daemon is not

  bool is_mounted() const { return !directory.empty(); }
};

// Errc::not_found: no such file; Errc::not_varve: a directory of another filesystem, with its type. Whether `source` holds a
// Varve filesystem has not been looked at.
Result<Place> find_place(const std::string& name);

// The device or image behind a name, for what works only where it is not mounted: UUID=... and LABEL=... are looked up, other names come
// back as they are. Errc::in_use: a directory where Varve is mounted; the message says what to do. Whether the device is in use elsewhere
// is found by opening it.
Result<std::string> find_unmounted(const std::string& name);

// Where it is mounted, for what only a running daemon can do. Errc::not_found: it is not mounted; Errc::io: its daemon is gone;
// Errc::not_varve, Errc::invalid: it is no Varve filesystem. The messages say what to do then.
Result<std::string> find_mounted(const std::string& name);

// "its daemon is gone ...", and how to go on.
Error daemon_gone(const Place& place);

// The device whose filesystem has this UUID=... or LABEL=..., as blkid(8) writes them; mounts first, then all block devices that can
// be read. Other words come back as they are. Errc::not_found, and Errc::invalid where a label is not unique.
Result<std::string> resolve_tag(const std::string& name);

}  // namespace varve::control
