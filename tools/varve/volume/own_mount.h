// A filesystem of an image that a tool mounts for itself, with the lease. Nothing cleans it, so that nothing happens but what is asked for.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "fs/filesystem.h"
#include "lease/leased_device.h"

namespace varve::tool {

class OwnMount {
 public:
  // `program`: for the lease, as "varve resize". `looks`: nothing is written, not even a recovery.
  static Result<OwnMount> open(const std::string& path, const std::string& program, bool looks = false) {
    auto device = TRY(lease::LeasedDevice::open(path, {.access = looks ? io::Access::read_only : io::Access::read_write}, {program, ""}));
    fs::Options options;
    options.read_only = looks;
    options.cleaner = false;
    auto filesystem = TRY(fs::Filesystem::mount(*device, options));
    return OwnMount(std::move(device), std::move(filesystem));
  }

  const std::string& name() const { return device_->name(); }
  fs::Filesystem& filesystem() { return *filesystem_; }
  // Unmounts it, and gives the lease back.
  Status close() {
    TRY(filesystem_->unmount());
    return device_->release();
  }

 private:
  OwnMount(std::unique_ptr<lease::LeasedDevice> device, std::unique_ptr<fs::Filesystem> filesystem)
      : device_(std::move(device)), filesystem_(std::move(filesystem)) {}

  std::unique_ptr<lease::LeasedDevice> device_;
  std::unique_ptr<fs::Filesystem> filesystem_;
};

}  // namespace varve::tool
