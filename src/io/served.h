// What a device can tell whose storage is a server's or a cluster's, beside what every device does.
#pragma once

#include <cstdint>
#include <optional>

namespace varve::io {

struct Connection {
  bool is_there = true;
  std::uint64_t away_ms = 0;      // for so long it is not
  std::uint64_t patience_ms = 0;  // after which the device has failed
  std::uint64_t renewals = 0;     // since it was opened
};

// Thread-safe.
class Served {
 public:
  virtual ~Served() = default;

  // Nothing: it has none of its own, as with Ceph.
  virtual std::optional<Connection> connection() const { return {}; }
  // Where the storage has a lock of its own (BlockDevice::shut_out()): whether another client that lives has it. False also where that
  // cannot be found out.
  virtual bool is_locked_by_another() { return false; }
};

}  // namespace varve::io
