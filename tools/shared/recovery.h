// What the next mount would do first, done by a tool.
#pragma once

#include "fs/filesystem.h"
#include "repair/repair.h"

namespace varve {

// repair::Recover with the engine: mounts and unmounts.
inline Status recover(io::BlockDevice& device, repair::Tolerance tolerance) {
  fs::Options options;
  options.background = options.cleaner = false;
  options.must_write = true;
  options.drop_lost_inodes = tolerance >= repair::Tolerance::lost_inodes;
  options.accept_log_damage = tolerance >= repair::Tolerance::log_damage;
  auto filesystem = TRY(fs::Filesystem::mount(device, options));
  return filesystem->unmount();
}

}  // namespace varve
