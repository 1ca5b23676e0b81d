// When changes become a chunk: for an fsync, for want of room in the next one, or because time has passed (sealer.h says how).
#pragma once

#include <cstdint>

#include "base/gate.h"
#include "base/result.h"
#include "base/types.h"

namespace varve::changes {
class Staging;
}

namespace varve::device {
class Faults;
class IoContext;
}  // namespace varve::device

namespace varve::io {
class Reactor;
}

namespace varve::log {
class Log;
}

namespace varve::checkpoint {

class Checkpoints;
class Sealer;

// Thread-safe.
class Seals {
 public:
  struct Parts {
    Gate& gate;
    const device::IoContext& io;
    device::Faults& faults;
    log::Log& log;
    const changes::Staging& staging;
    Sealer& sealer;
    Checkpoints& checkpoints;
  };
  explicit Seals(const Parts& parts) : parts_(parts) {}

  // Everything acknowledged so far is in chunk <result> or earlier. Does not wait for I/O.
  // commit: the caller is about to wait until it is durable. `reactor`: of the calling thread, or null.
  enum class Purpose : std::uint8_t { append, commit };
  Result<Lsn> seal(Purpose purpose = Purpose::append, io::Reactor* reactor = nullptr) EXCLUDES(the_gate);
  // After Space::Room::chunk_full: makes room for records in this chunk, if it has much to gain by that and `seal` does not ask for
  // the next one.
  Status make_room_for_records(bool seal, io::Reactor* reactor = nullptr) EXCLUDES(the_gate);
  // When the oldest operation was acknowledged that no flush will come for by itself: it is in no chunk, or in one that nobody
  // waits for. 0: there is none.
  std::uint64_t unawaited_since_ns() const;

 private:
  Parts parts_;
};

}  // namespace varve::checkpoint
