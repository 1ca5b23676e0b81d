// A damaged image as `varve salvage` sees it: as large as the filesystem on it once was, and repaired in memory.
#pragma once

#include <memory>
#include <string>

#include "control/onlooker.h"
#include "fs/filesystem.h"
#include "io/overlay_device.h"
#include "repair/padded_device.h"
#include "repair/repair.h"

namespace varve::tool {

class SalvageSource {
 public:
  // Errors only where there is nothing to mount. `snapshot`: this one instead of the newest state, if not empty.
  static Result<std::unique_ptr<SalvageSource>> open(const std::string& path, const std::string& snapshot);

  const repair::Outcome& repaired() const { return outcome_; }
  const std::string& failure() const { return failure_; }  // why it was not repaired; or ""
  fs::Filesystem& filesystem() { return *filesystem_; }     // read-only
  // See control::warning_of(): of all that has been read until now.
  std::string warning() { return warning_of(onlooker_, onlooker_.watch()); }

 private:
  // What lies on a device: its missing end, then changes.
  struct Layer {
    repair::PaddedDevice padded;
    io::OverlayDevice changed;
    Layer(io::BlockDevice& below, std::uint64_t blocks) : padded(below, blocks), changed(padded) {}
  };

  explicit SalvageSource(std::unique_ptr<io::BlockDevice> device) : device_(std::move(device)), onlooker_(*device_) {}
  Status repair();
  Status repair_with_more_room();
  Status mount(const std::string& snapshot);

  std::unique_ptr<io::BlockDevice> device_;
  control::Onlooker onlooker_;
  std::unique_ptr<Layer> whole_;
  std::unique_ptr<Layer> enlarged_;  // above it, if there is no room for a repair
  repair::Outcome outcome_;
  std::string failure_;
  std::unique_ptr<fs::Filesystem> filesystem_;
};

}  // namespace varve::tool
