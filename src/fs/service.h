// The thread that carries I/O of threads which have no reactor, and seals what nobody syncs when its time has come.
#pragma once

#include <atomic>
#include <thread>

#include "base/mutex.h"

namespace varve::fs {

class Engine;

class Service {
 public:
  explicit Service(Engine& engine) : engine_(engine) {}

  void start();  // returns when it takes requests
  void stop();   // what was handed over before that is carried out

 private:
  void serve();

  Engine& engine_;
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool ready_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
};

}  // namespace varve::fs
