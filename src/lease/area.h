// The first blocks of a device as a program sees them that holds or wants its lease.
#pragma once

#include <cstdint>
#include <optional>

#include "format/lease.h"
#include "io/block_device.h"

namespace varve::lease {

struct Look {
  std::uint32_t first_block = 0;  // CRC of block 0, the superblock
  bool has_superblock = false;    // a valid one stands there
  bool is_blank = false;          // the lease's block holds only zeros, as after a release
  std::optional<format::Lease> lease;
  std::optional<format::Challenge> challenge;
  std::optional<format::Answer> answer;
};

// Reads and writes through the device itself, past every cache of Varve's. Thread-safe as the device is.
class Area {
 public:
  explicit Area(io::BlockDevice& device) : device_(device) {}

  bool has_room() const { return device_.geometry().blocks() > format::kAnswerBlock; }
  const std::string& name() const { return device_.name(); }
  std::string refusal() const { return device_.refusal(); }

  Result<Look> read();
  // Durable when they return. Errc::interrupted: the connection was lost meanwhile, and will be made good.
  Status write(const format::Lease& lease);
  Status write(const format::Challenge& challenge);
  Status write(const format::Answer& answer);
  Status clear_lease();
  Status clear_challenge();

 private:
  Status read_blocks(std::span<std::byte> out);
  Status write_block(std::uint64_t block, std::span<std::byte> bytes);

  io::BlockDevice& device_;
};

}  // namespace varve::lease
