// The content of a file that is salvaged.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "varve/rescue/salvage_copy.h"

namespace varve::tool {

// What the host did not do, as errno says: a loss, or an error if it takes nothing more.
Status host_refuses(const std::string& what, const std::string& path, SalvageReport& report);

class SalvagedData {
 public:
  SalvagedData(fs::Filesystem& filesystem, SalvageReport& report, const SalvageAdvance& advance);

  // All that can be read, to the open `file` of that size. `path` is for the report.
  Status copy(const fs::Attr& attr, int file, const std::string& path);

 private:
  template <class Function>
  auto call(Function&& function) {
    fs::Operation operation(fs_.operations(), fs::Caller{});
    return fs::block_on(operation, [&] { return function(operation); });
  }

  // false: the host takes no more of this file, which has been reported.
  Result<bool> copy_piece(Ino ino, std::uint64_t offset, std::uint64_t length, int file, const std::string& path,
                          std::vector<std::uint64_t>& bad);
  Result<bool> write(int file, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path);
  void tell_damage(const std::string& path, const std::vector<std::uint64_t>& bad);

  fs::Filesystem& fs_;
  SalvageReport& report_;
  const SalvageAdvance& advance_;
  AlignedBuffer buffer_;
};

}  // namespace varve::tool
