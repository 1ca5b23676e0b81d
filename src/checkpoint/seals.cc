#include "checkpoint/seals.h"

#include "changes/staging.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/sealer.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "log/log.h"

namespace varve::checkpoint {

Result<Lsn> Seals::seal(Purpose purpose, io::Reactor* reactor) {
  Result<Lsn> lsn = Errc::read_only;
  {
    const Gate::Closure closed(parts_.gate);
    if (parts_.faults.read_only()) return parts_.faults.refusal();
    lsn = parts_.sealer.run(purpose == Purpose::commit, reactor);
  }
  parts_.faults.settle_alarm();
  if (!lsn.ok()) parts_.faults.go_read_only(lsn.error());
  if (parts_.faults.read_only()) parts_.log.give_up();  // it may have become so with the gate closed
  if (parts_.checkpoints.epoch_due() && !parts_.io.background()) TRY(parts_.checkpoints.write_epoch());
  return lsn;
}

Status Seals::make_room_for_records(bool seal, io::Reactor* reactor) {
  bool made = false;
  if (!seal) {
    const Gate::Closure closed(parts_.gate);
    made = parts_.sealer.make_room_for_records();
  }
  parts_.faults.settle_alarm();
  if (!made) TRY(this->seal(Purpose::append, reactor));
  return {};
}

// A seal hands the time over to its chunk before it forgets it, so it is looked for in this order. What is in a chunk is older.
std::uint64_t Seals::unawaited_since_ns() const {
  const std::uint64_t unsealed = parts_.staging.unsealed().since_ns();
  const std::uint64_t sealed = parts_.log.durability().unawaited_since_ns();
  return sealed ? sealed : unsealed;
}

}  // namespace varve::checkpoint
