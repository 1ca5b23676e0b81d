// The thread that carries I/O of threads which have no reactor, and seals what nobody syncs when its time has come.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/mutex.h"
#include "jobs/parts.h"

namespace varve::jobs {

class SealTimer {
 public:
  struct Parts {
    Clock& clock;
    device::IoContext& io;
    const device::Faults& faults;
    log::Log& log;
    checkpoint::Seals& seals;
    const Requests& requests;
    std::uint64_t delay_ns = 0;  // commit=
  };
  explicit SealTimer(const Parts& parts) : parts_(parts) {}

  void start();  // returns when it takes requests
  void stop();   // what was handed over before that is carried out

 private:
  void serve();

  const Parts parts_;
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool ready_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
};

}  // namespace varve::jobs
