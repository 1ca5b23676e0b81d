#include "daemon/worker.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "base/logging.h"
#include "fuse/operations/opcodes.h"

namespace varve::daemon {

namespace {
constexpr std::size_t kept_of(std::size_t request_bytes) { return request_bytes / 4; }
}  // namespace

Worker::Worker(fuse::Session& session, const ServerOptions& options, unsigned index, IdleWatch* watch, std::size_t request_bytes,
               std::span<std::byte> memory)
    : session_(session),
      counters_(session.add_counters()),
      request_bytes_(request_bytes),
      pool_(std::make_shared<fuse::BufferPool>(kept_of(request_bytes), options.memory, memory)),
      thread_([this, idle = options.idle_threads, index, watch] { run(idle, index, watch); }) {}

Worker::~Worker() {
  ask_to_stop();
  join();
}

void Worker::ask_to_stop() {
  const Lock lock(mutex_);
  asked_to_stop_ = true;
  if (published_reactor_) published_reactor_->post([this] { stopping_ = true; });
}

void Worker::limit(std::size_t request_bytes) {
  request_bytes_ = request_bytes;
  pool_->keep(kept_of(request_bytes));
  const Lock lock(mutex_);
  if (published_reactor_) published_reactor_->wake();  // it may wait for the former one
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::publish(io::Reactor* reactor) {
  const Lock lock(mutex_);
  published_reactor_ = reactor;
  if (asked_to_stop_) stopping_ = true;
}

void Worker::run(IdleThreads idle, unsigned index, IdleWatch* watch) {
  ::pthread_setname_np(::pthread_self(), "varve-serve");
  CpuPlacement placement(idle, index, watch);
  const auto reactor = io::Reactor::make();
  publish(reactor.get());
  serve(*reactor, placement);
  publish(nullptr);
}

// Goes on after the last message until nothing started on the reactor is left: others wait for I/O of theirs on it. What is read ahead
// belongs to no request, and may wait for a node that another thread reads.
void Worker::serve(io::Reactor& reactor, CpuPlacement& placement) {
  reactor_ = &reactor;
  const auto port = session_.transport().open(reactor, pool_, *this);
  port_ = port.get();
  while (!stopping_ || active_ > 0 || reactor.is_needed()) {
    if (stopping_) port_->pause();
    reactor.may_spin(placement.is_idle());
    const bool holding = active_ > 0 || reactor.in_flight() > 0;
    const std::uint64_t before = received_;
    wait(reactor, placement);
    placement.woken(holding || received_ != before);
    recycle_finished();
  }
  pool_->forget_call();
}

namespace {

// The shorter of two times, each in ns, and negative for ever.
std::int64_t shorter(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

void Worker::wait(io::Reactor& reactor, const CpuPlacement& placement) {
  limit_intake();
  if (paused_) session_.fs().give_back_messages(reactor);  // or nobody would seal what is kept in them before its time has come
  const std::int64_t rest = paused_ ? static_cast<std::int64_t>(fuse::ReadAhead::kPatience) : port_->rest();
  reactor.wait(shorter(rest, placement.rest()));
}

void Worker::receive(fuse::Message& message) {
  fuse::Request& request = free_request();
  request.begin(message);
  ++active_;
  ++received_;
  dispatch(request);
  recycle_finished();
  limit_intake();
}

void Worker::dispatch(fuse::Request& request) {
  const std::uint32_t opcode = request.header().opcode;
  if (opcode < fuse::kOpcodes) counters_.served[opcode].fetch_add(1, std::memory_order_relaxed);
  const Status decoded = fuse::handler_of(request)(request);
  if (!decoded.ok() && !request.finished()) request.reply_error(decoded.error());
}

void Worker::disconnected(int error) {
  stopping_ = true;
  if (error) log_error("the connection to the kernel broke: {}", std::strerror(error));
  session_.end(error);
}

void Worker::prepare() {
  if (!free_.empty()) return;
  INVARIANT(active_ <= requests_.size());
  finished_.reserve(requests_.size() + 1);  // ending one needs no memory
  free_.reserve(requests_.size() + 1);
  requests_.push_back(std::make_unique<fuse::Request>(fuse::RequestHost{session_, *reactor_, pool_, finished_, &counters_.latencies}));
  free_.push_back(requests_.back().get());
}

fuse::Request& Worker::free_request() {
  MEMORY_INVARIANT(!free_.empty());
  fuse::Request& request = *free_.back();
  free_.pop_back();
  return request;
}

// Only here, never from inside a request's own callbacks.
void Worker::recycle_finished() {
  for (fuse::Request* request : finished_) {
    request->recycle();
    free_.push_back(request);
    MEMORY_INVARIANT(active_ > 0);
    --active_;
  }
  finished_.clear();
}

void Worker::limit_intake() {
  if (paused_) session_.read_ahead().expire();  // no request that comes could
  // The blocks that could not be written stay readable, for good or until the host has room, and no more come to them.
  const bool is_refused = session_.fs().read_only() || session_.fs().host_full();
  bool too_much = pool_->leased_bytes() > request_bytes_ && !is_refused;
  if (too_much) too_much = pool_->when_below(request_bytes_, [reactor = reactor_] { reactor->wake(); });  // the limit may be another one
  if (too_much == paused_ || stopping_) return;
  if (too_much)
    port_->pause();
  else
    port_->resume();
  paused_ = too_much;  // now: what has thrown is tried again
}

}  // namespace varve::daemon
