// What stands where on a device, in as many cells as there is room to draw: read from `.ffile`, and from `.mfile` where
// owners are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "varve/steps.h"
#include "varve/volume/image_reader.h"

namespace varve::tool {

inline constexpr std::uint8_t kNoGroup = 0xFD;  // nothing live

// A run of blocks of equal length; the last one may be shorter.
struct MapCell {
  std::uint64_t blocks = 0;
  std::uint64_t live = 0;
  double age = 0;                 // of its live blocks on average: blocks written to the log since the youngest of their segment
  std::uint8_t group = kNoGroup;  // of most of its live blocks
  Ino owner;                      // of the majority of its live file blocks, if there is one; none: nodes or nothing

  double live_share() const { return blocks ? static_cast<double>(live) / static_cast<double>(blocks) : 0; }
};

struct DeviceMap {
  std::uint64_t blocks = 0;           // in segments
  std::uint64_t live = 0;
  std::uint64_t blocks_per_cell = 1;
  std::uint64_t segments = 0, empty_segments = 0;
  std::vector<MapCell> cells;
  std::vector<std::pair<Ino, std::uint64_t>> owners;  // live blocks of each file, most first
  std::uint64_t node_blocks = 0;                      // live blocks that are no file's
};

struct MapRequest {
  std::size_t cells = 1024;  // at most so many
  bool owners = false;
  // Asked now and then with the share that has been read, from 0 to 1; an error ends it. None: nobody wants to know.
  std::function<Status(double)> advance{};
};

// The state of the checkpoint that `image` was opened at. Errc::corrupt also when a mount has used blocks of it again
// meanwhile: open it anew.
Result<DeviceMap> read_device_map(ImageReader& image, const MapRequest& request);
// The same of a place, with another try where a mount has used blocks again.
Result<DeviceMap> read_device_map(const ViewedPlace& place, const MapRequest& request);
// For MapRequest::advance; `steps` outlives it.
std::function<Status(double)> showing(Steps& steps);

}  // namespace varve::tool
