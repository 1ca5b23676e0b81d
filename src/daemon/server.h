// The serving threads of a mount: each takes messages, serves them without ever waiting for one of them, and replies.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/cpu_placement.h"
#include "fuse/operations/session.h"
#include "fuse/transport/buffer_pool.h"
#include "fuse/transport/large_memory.h"

namespace varve::daemon {

struct ServerOptions {
  unsigned threads = 0;  // 0: one per CPU, at most kMaxThreads
  IdleThreads idle_threads = IdleThreads::automatic;
  // Of messages and replies under way, beyond which none are taken; but each thread gets what it needs to go on.
  std::size_t request_bytes = 32u << 20;
  std::shared_ptr<fuse::LargeMemory> memory = nullptr;  // for the large ones of them; shared out among the threads

  static constexpr unsigned kMaxThreads = 4;

  // Less than what pauses half of the threads: requests that never come must not keep all of them from serving.
  std::size_t read_ahead_bytes() const { return std::min(request_bytes / 3, fuse::ReadAhead::kMostBytes); }
};

class Worker;

class Server {
 public:
  // What the next message is read into, data that wait to be written, and the request that is served.
  static constexpr std::size_t kLeastPerThread = 3 * fuse::BufferPool::kMaxBytes;

  // Starts the threads. All three must outlive it.
  Server(fuse::Session& session, const ServerOptions& options);
  ~Server();  // stop()

  // Another ServerOptions::request_bytes. By the thread that calls stop().
  void limit_requests(std::size_t bytes);

  // Takes no more messages, finishes the requests under way, ends the threads.
  void stop();

 private:
  fuse::Session& session_;
  std::unique_ptr<IdleWatch> watch_;  // if the threads may be idle ones for a while
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace varve::daemon
