#include "io/block_folder.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <fstream>

namespace varve::io {

std::filesystem::path block_folder(dev_t device) { return fmt::format("/sys/dev/block/{}:{}", major(device), minor(device)); }

std::optional<std::uint64_t> block_attribute(const std::filesystem::path& folder, const std::string& name) {
  for (const char* where : {".", ".."}) {
    std::ifstream file(folder / where / name);
    std::uint64_t value = 0;
    if (file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace varve::io
