#include "fsck/recovery.h"

#include <spdlog/spdlog.h>

#include "fs/filesystem.h"
#include "io/overlay_device.h"

namespace varve::fsck {

Status recover(io::BlockDevice& device) {
  spdlog::set_level(spdlog::level::warn);  // the report says that it was recovered
  fs::Options options;
  options.background = false;
  options.cleaner = false;
  auto filesystem = TRY(fs::Filesystem::mount(device, options));
  return filesystem->unmount();
}

Result<std::unique_ptr<io::BlockDevice>> recover_onto_overlay(io::BlockDevice& device) {
  auto overlay = std::make_unique<io::OverlayDevice>(device);
  TRY(recover(*overlay));
  return std::unique_ptr<io::BlockDevice>(std::move(overlay));
}

}  // namespace varve::fsck
