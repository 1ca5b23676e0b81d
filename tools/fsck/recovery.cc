#include "fsck/recovery.h"

#include <spdlog/spdlog.h>

#include "fs/filesystem.h"

namespace varve::fsck {

Status recover(io::BlockDevice& device, bool accept_log_damage) {
  spdlog::set_level(spdlog::level::err);  // the report says what was done
  fs::Options options;
  options.background = false;
  options.cleaner = false;
  options.accept_log_damage = accept_log_damage;
  auto filesystem = TRY(fs::Filesystem::mount(device, options));
  return filesystem->unmount();
}

}  // namespace varve::fsck
