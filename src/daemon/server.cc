#include "daemon/server.h"

#include <algorithm>

#include "daemon/worker.h"

namespace varve::daemon {

namespace {
std::size_t per_thread(std::size_t request_bytes, std::size_t threads) {
  return std::max(request_bytes / threads, Server::kLeastPerThread);
}
}  // namespace

Server::Server(fuse::Session& session, const ServerOptions& options) : session_(session) {
  const unsigned threads = options.threads ? options.threads : std::min(cpu_count(), ServerOptions::kMaxThreads);
  const auto memory = options.memory ? options.memory->bytes() : std::span<std::byte>();
  const std::size_t share = memory.size() / threads / kBlockSize * kBlockSize;
  const std::size_t request_bytes = per_thread(options.request_bytes, threads);
  if (options.idle_threads == IdleThreads::automatic) watch_ = std::make_unique<IdleWatch>();
  for (unsigned i = 0; i < threads; ++i)
    workers_.push_back(
        std::make_unique<Worker>(session, options, i, watch_.get(), request_bytes, memory.subspan(i * share, share)));
}

Server::~Server() { stop(); }

void Server::limit_requests(std::size_t bytes) {
  session_.read_ahead().limit(ServerOptions{.request_bytes = bytes}.read_ahead_bytes());
  for (const auto& worker : workers_) worker->limit(per_thread(bytes, workers_.size()));
}

void Server::stop() {
  session_.flusher().stop();  // needs the workers
  session_.cache_probes().stop();
  session_.space_watch().stop();  // the same
  session_.block_counts().stop();
  for (const auto& worker : workers_) worker->ask_to_stop();
  for (const auto& worker : workers_) worker->join();
}

}  // namespace varve::daemon
