#include "jobs/seal_timer.h"

#include <algorithm>

#include "base/clock.h"
#include "checkpoint/seals.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "io/reactor.h"
#include "jobs/requests.h"
#include "log/log.h"

namespace varve::jobs {

void SealTimer::start() {
  thread_ = std::thread([this] { serve(); });
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return ready_; });
}

void SealTimer::stop() {
  stop_ = true;
  parts_.io.wake_service();
  if (thread_.joinable()) thread_.join();
}

void SealTimer::serve() {
  io::Reactor& reactor = parts_.io.open_service();
  {
    const Lock lock(mutex_);
    ready_ = true;
  }
  changed_.notify_all();
  while (!stop_) {
    std::int64_t timeout = -1;
    if (parts_.requests.is_armed()) timeout = 1'000'000'000;  // something may become unsealed without a word to this thread
    if (const std::uint64_t since = parts_.seals.unawaited_since_ns(); since && !parts_.faults.read_only()) {
      const std::uint64_t now = parts_.clock.monotonic_ns();
      if (now >= since + parts_.delay_ns) {
        if (auto lsn = parts_.seals.seal(checkpoint::Seals::Purpose::commit, &reactor); lsn.ok())
          parts_.log.durability().when_durable(*lsn, [](Status) {}, &reactor);
        continue;
      }
      timeout = std::min<std::int64_t>(1'000'000'000, static_cast<std::int64_t>(since + parts_.delay_ns - now));
    }
    reactor.wait(timeout);
  }
  parts_.io.end_service();
  for (reactor.poll(); reactor.is_needed();) reactor.wait(-1);  // what was handed over before that is carried out
  parts_.io.close_service();
}

}  // namespace varve::jobs
