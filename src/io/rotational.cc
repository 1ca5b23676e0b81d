#include "io/rotational.h"

#include <string>
#include <system_error>

#include "io/block_folder.h"

namespace varve::io {

namespace files = std::filesystem;

bool is_rotational(const files::path& directory) {
  if (!block_attribute(directory, "queue/rotational").value_or(0)) return false;
  std::error_code error;
  const files::path real = files::canonical(directory, error);
  if (error) return true;
  if (real.string().find("/virtio") != std::string::npos) return false;
  const files::path disk = files::exists(real / "partition", error) ? real.parent_path() : real;
  bool any = false;
  for (files::directory_iterator at(disk / "slaves", error), end; !error && at != end; at.increment(error)) {
    if (is_rotational(at->path())) return true;
    any = true;
  }
  return !any;
}

}  // namespace varve::io
