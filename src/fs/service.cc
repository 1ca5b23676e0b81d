#include "fs/service.h"

#include <algorithm>

#include "base/types.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "fs/maintenance.h"
#include "io/reactor.h"
#include "log/log.h"
#include "store/store.h"

namespace varve::fs {

void Service::start() {
  thread_ = std::thread([this] { serve(); });
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return ready_; });
}

void Service::stop() {
  stop_ = true;
  engine_.store().io().wake_service();
  if (thread_.joinable()) thread_.join();
}

void Service::serve() {
  store::Store& store = engine_.store();
  io::Reactor& reactor = store.io().open_service();
  {
    const Lock lock(mutex_);
    ready_ = true;
  }
  changed_.notify_all();
  const std::uint64_t delay_ns = engine_.options().seal_delay_ms * 1'000'000ULL;
  while (!stop_) {
    std::int64_t timeout = -1;
    if (engine_.maintenance().is_armed()) timeout = 1'000'000'000;  // something may become unsealed without a word to this thread
    if (const std::uint64_t since = store.unawaited_since_ns(); since && !store.faults().read_only()) {
      const std::uint64_t now = store.options().clock->monotonic_ns();
      if (now >= since + delay_ns) {
        if (auto lsn = store.seal(store::Store::Seal::commit, &reactor); lsn.ok())
          store.log().durability().when_durable(*lsn, [](Status) {}, &reactor);
        continue;
      }
      timeout = std::min<std::int64_t>(1'000'000'000, static_cast<std::int64_t>(since + delay_ns - now));
    }
    reactor.wait(timeout);
  }
  store.io().end_service();
  for (reactor.poll(); reactor.is_needed();) reactor.wait(-1);  // what was handed over before that is carried out
  store.io().close_service();
}

}  // namespace varve::fs
