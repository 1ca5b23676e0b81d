#include "io/rotational.h"

#include <fstream>
#include <string>
#include <system_error>

namespace varve::io {

namespace files = std::filesystem;

namespace {

bool says_so(const files::path& directory) {
  for (const char* queue : {"queue", "../queue"}) {  // a partition finds it in its disk's directory
    std::ifstream file(directory / queue / "rotational");
    int value = 0;
    if (file >> value) return value != 0;
  }
  return false;
}

}  // namespace

bool is_rotational(const files::path& directory) {
  if (!says_so(directory)) return false;
  std::error_code error;
  const files::path real = files::canonical(directory, error);
  if (error) return true;
  if (real.string().find("/virtio") != std::string::npos) return false;
  bool any = false;
  for (files::directory_iterator at(real / "slaves", error), end; !error && at != end; at.increment(error)) {
    if (is_rotational(at->path())) return true;
    any = true;
  }
  return !any;
}

}  // namespace varve::io
