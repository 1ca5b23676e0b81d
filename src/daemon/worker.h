// One serving thread.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/tunable.h"
#include "daemon/server.h"
#include "fuse/operations/request.h"
#include "fuse/transport/transport.h"

namespace varve::daemon {

class Worker : private fuse::MessageSink {
 public:
  // Starts the thread; `index` says which CPU is its own. `watch` (or none) outlives it.
  Worker(fuse::Session& session, const ServerOptions& options, unsigned index, IdleWatch* watch, std::size_t request_bytes,
         std::span<std::byte> memory);
  ~Worker() override;

  void ask_to_stop();  // thread-safe
  void limit(std::size_t request_bytes);  // another limit; thread-safe
  void join();

 private:
  void run(IdleThreads idle, unsigned index, IdleWatch* watch);
  void serve(io::Reactor& reactor, CpuPlacement& placement);
  void wait(io::Reactor& reactor, const CpuPlacement& placement);
  void prepare() override;
  void receive(fuse::Message& message) override;
  void disconnected(int error) override;
  void dispatch(fuse::Request& request);
  fuse::Request& free_request();
  void recycle_finished();
  void limit_intake();
  void publish(io::Reactor* reactor);

  fuse::Session& session_;
  fuse::RequestCounters& counters_;
  Tunable<std::size_t> request_bytes_;

  Mutex mutex_{LockRank::io_thread};  // guards published_reactor_, through which others reach the thread
  io::Reactor* published_reactor_ GUARDED_BY(mutex_) = nullptr;
  bool asked_to_stop_ GUARDED_BY(mutex_) = false;

  // The thread's own.
  std::shared_ptr<fuse::BufferPool> pool_;  // shared with the payload that is still under way
  io::Reactor* reactor_ = nullptr;
  fuse::Port* port_ = nullptr;
  bool stopping_ = false;
  bool paused_ = false;
  std::vector<std::unique_ptr<fuse::Request>> requests_;
  std::vector<fuse::Request*> free_;
  std::vector<fuse::Request*> finished_;
  std::size_t active_ = 0;  // begun and not recycled
  std::uint64_t received_ = 0;  // messages, so far

  std::thread thread_;
};

}  // namespace varve::daemon
