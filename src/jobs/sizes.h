// Knows which sizes a filesystem may get, and that of its device.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "jobs/parts.h"

namespace varve::jobs {

// Blocks. Thread-safe.
class Sizes {
 public:
  struct Parts {
    Gate& gate;
    io::BlockDevice& device;
    const checkpoint::SuperblockKeeper& superblocks;
    const segments::SegmentTable& segments;
    space::Charge& charge;
  };
  explicit Sizes(const Parts& parts) : parts_(parts) {}

  std::uint64_t present() const;
  std::uint64_t least() const;  // to which it could be shrunk now, as far as can be told
  std::uint64_t of_device() const;
  std::uint64_t segments_of(std::uint64_t blocks) const;
  // Errc::invalid, no_space: says what is wrong with a size, and which one would do.
  Status check(std::uint64_t blocks) const;
  // Returns the blocks of a filesystem with so many bytes (0: as many as the device has). The device becomes longer, if need be and it can.
  Result<std::uint64_t> make_room_for(std::uint64_t bytes);
  Status cut_device(std::uint64_t blocks);     // to that length, if it can become shorter
  void aim_at(std::uint64_t segments);         // users find as much room as with so many; 0: as there is

 private:
  const Parts parts_;
};

}  // namespace varve::jobs
