// The modelled devices by name. docs/devices.md has the source of each parameter.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace varve::bench {

struct CatalogueEntry {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<DeviceModel> (*make)(std::uint64_t size);  // bytes, a multiple of 32 MiB
};

const std::vector<CatalogueEntry>& catalogue();

// Null for a name that is not in it.
std::unique_ptr<DeviceModel> make_model(std::string_view name, std::uint64_t size);

// The same for a filesystem of `size` bytes. A disk is as large as those that are sold, and the filesystem lies at its beginning:
// so seeks are short.
std::unique_ptr<DeviceModel> make_model_for(std::string_view name, std::uint64_t size);

}  // namespace varve::bench
