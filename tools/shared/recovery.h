// What the next mount would do first, done by a tool.
#pragma once

#include "fs/filesystem.h"

namespace varve {

// Mounts with the engine, which replays the log, and unmounts. `accept_log_damage`: repair::Recover.
inline Status recover(io::BlockDevice& device, bool accept_log_damage) {
  fs::Options options;
  options.background = options.cleaner = false;
  options.accept_log_damage = accept_log_damage;
  auto filesystem = TRY(fs::Filesystem::mount(device, options));
  return filesystem->unmount();
}

}  // namespace varve
