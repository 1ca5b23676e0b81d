// The serving threads of a mount: each takes messages, serves them without ever waiting for one of them, and replies.
#pragma once

#include <memory>
#include <vector>

#include "fuse/large_memory.h"
#include "fuse/placement.h"
#include "fuse/session.h"

namespace varve::fuse {

struct ServerOptions {
  unsigned threads = 0;  // 0: one per CPU, at most kMaxThreads
  IdleThreads idle_threads = IdleThreads::automatic;
  std::size_t request_bytes = 32u << 20;  // of messages and replies under way, beyond which none are taken
  std::shared_ptr<LargeMemory> memory = nullptr;  // for the large ones of them; shared out among the threads

  static constexpr unsigned kMaxThreads = 4;
};

class Worker;

class Server {
 public:
  // Starts the threads. All three must outlive it.
  Server(Session& session, io::BlockDevice& device, const ServerOptions& options);
  ~Server();  // stop()

  // Takes no more messages, finishes the requests under way, ends the threads.
  void stop();

 private:
  Session& session_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace varve::fuse
