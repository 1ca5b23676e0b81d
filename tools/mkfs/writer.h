// Puts an empty filesystem onto a device.
#pragma once

#include <cstdint>
#include <functional>

#include "format/make.h"
#include "io/block_device.h"

namespace varve::mkfs {

// Overwrites the places where filesystems, partition tables and pools are recognised; flushed when it returns.
Status wipe_signatures(io::BlockDevice& device);

struct WriteOptions {
  bool discard = false;   // tell a block device first that everything is garbage
  bool prewrite = false;  // write zeros everywhere first
  std::function<Status(std::uint64_t done, std::uint64_t all)> during_prewrite{};  // bytes; an error ends it
};

// Old superblocks and signatures go first, then nodes, then superblocks, with flushes between: a crash leaves the old
// content recognisably destroyed or the new filesystem whole.
Status write_filesystem(io::BlockDevice& device, const format::EmptyFilesystem& made, const WriteOptions& options);

}  // namespace varve::mkfs
