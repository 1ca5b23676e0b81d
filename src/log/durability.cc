#include "log/durability.h"

#include <algorithm>
#include <iterator>
#include <new>

#include <fmt/format.h>

#include "base/invariant.h"
#include "io/transfer.h"

namespace varve::log {

Durability::Durability(device::IoContext& io) : io_(io) {
  flush_request_.kind = io::IoKind::flush;
  flush_request_.done = [this](io::IoRequest& request) { flush_done(flush_, request.error, request.reactor()); };
}

Durability::~Durability() {
  const Lock lock(mutex_);
  if (flushing_) io_.abandon();
}

void Durability::start(Lsn last) {
  const Lock lock(mutex_);
  written_ = last;
  set_durable(last);
}

void Durability::set_durable(Lsn lsn) {
  INVARIANT(lsn <= written_);
  durable_ = std::max(durable_, lsn);
  forget_unawaited(durable_);
}

void Durability::forget_unawaited(Lsn last) {
  while (!unawaited_.empty() && unawaited_.front().first <= last) unawaited_.pop_front();
  note_oldest_unawaited();
}

void Durability::note_oldest_unawaited() { unawaited_since_ns_ = unawaited_.empty() ? 0 : unawaited_.front().second; }

std::uint64_t Durability::payload_started() {
  const Lock lock(mutex_);
  payload_.insert(next_ticket_);
  ++writes_;
  return next_ticket_++;
}

void Durability::payload_done(std::uint64_t ticket, int error, io::Reactor* reactor) {
  if (error) fail(io::failure(io_.device(), error, fmt::format("writing data to {}", io_.device().name())));
  Lock lock(mutex_);
  INVARIANT(payload_.erase(ticket) == 1);
  advance();
  start_flush_if_wanted(lock, reactor);
}

bool Durability::chunk_started(Lsn lsn, bool commit, std::uint64_t since_ns) {
  const Lock lock(mutex_);
  const bool alone = nothing_in_flight() && flushed_ == writes_ && written_ == durable_;
  INVARIANT(lsn > written_);
  INVARIANT(chunks_.empty() || lsn > chunks_.rbegin()->first);
  chunks_.emplace(lsn, Chunk{next_ticket_, commit && alone});
  unawaited_.emplace_back(lsn, since_ns);
  note_oldest_unawaited();
  ++writes_;
  return commit && alone;
}

void Durability::note_write() {
  const Lock lock(mutex_);
  ++writes_;
}

void Durability::chunk_done(Lsn lsn, int error, io::Reactor* reactor) {
  if (error) fail(io::failure(io_.device(), error, fmt::format("writing the log to {}", io_.device().name())));
  Lock lock(mutex_);
  if (auto found = chunks_.find(lsn); INVARIANT(found != chunks_.end())) {
    INVARIANT(!found->second.done);
    found->second.done = true;
  }
  advance();
  go_on(lock, reactor);
}

void Durability::go_on(Lock& lock, io::Reactor* reactor) {
  const Waiters ready = take_ready();
  start_flush_if_wanted(lock, reactor);
  if (lock.owns_lock()) lock.unlock();
  tell(ready, {});
}

void Durability::tell(const Waiters& waiters, const Status& status) {
  for (const auto& waiter : waiters) waiter.second.ready(status);
}

Durability::Waiters Durability::take_ready() {
  Waiters ready;
  while (!waiters_.empty() && waiters_.begin()->first <= durable_) ready.insert(waiters_.extract(waiters_.begin()));
  return ready;
}

void Durability::advance() {
  if (failure_) return;
  while (!chunks_.empty()) {
    const auto& [lsn, chunk] = *chunks_.begin();
    const bool payload_written = payload_.empty() || *payload_.begin() >= chunk.payload_before;
    if (!chunk.done || !payload_written) return;
    INVARIANT(lsn > written_);
    written_ = lsn;
    if (chunk.durable && !flushing_) {  // while somebody flushes, that may hear of an error in its place
      set_durable(lsn);
      ++flushed_;
    }
    chunks_.erase(chunks_.begin());
  }
}

Durability::Flush Durability::begin_flush() {
  INVARIANT(!flushing_);
  flushing_ = true;
  return {written_, nothing_in_flight() ? writes_ : 0};
}

void Durability::start_flush_if_wanted(Lock& lock, io::Reactor* reactor) {
  if (flushing_ || queued_ || failure_ || waiters_.empty() || written_ <= durable_) return;
  if (waiters_.begin()->first > written_) return;
  flush_ = begin_flush();
  lock.unlock();
  io_.start(flush_request_, reactor);
}

int Durability::flush_here() {
  io::IoRequest request;
  request.kind = io::IoKind::flush;
  return io_.device().execute(request);
}

void Durability::flush_done(const Flush& flush, int error, io::Reactor* reactor) {
  if (error) fail(io::failure(io_.device(), error, fmt::format("flushing {}", io_.device().name())));
  Lock lock(mutex_);
  INVARIANT(flushing_);
  INVARIANT(flush.writes <= writes_);
  flushing_ = false;
  turn_.notify_all();
  if (failure_) return;
  set_durable(flush.chunks);
  flushed_ = std::max(flushed_, flush.writes);
  go_on(lock, reactor);
}

Status Durability::flush_now() {
  Lock lock(mutex_);
  ++queued_;
  while (flushing_ && !failure_) {
    if (io_.background()) {
      turn_.wait(lock);
    } else {
      lock.unlock();
      io_.wait();
      lock.lock();
    }
  }
  INVARIANT(queued_ > 0);
  --queued_;
  if (failure_) return *failure_;
  const Flush flush = begin_flush();
  lock.unlock();
  flush_done(flush, flush_here(), nullptr);
  if (auto failed = failure()) return *failed;
  return {};
}

Lsn Durability::durable() const {
  const Lock lock(mutex_);
  return durable_;
}

void Durability::when_durable(Lsn lsn, std::function<void(Status)> ready, io::Reactor* reactor, Patience patience) {
  Lock lock(mutex_);
  if (failure_) {
    const Error error = *failure_;
    lock.unlock();
    ready(error);
    return;
  }
  if (durable_ >= lsn) {
    lock.unlock();
    ready(Status{});
    return;
  }
  INVARIANT(!chunks_.empty() || lsn <= written_);  // what never comes would be waited for, for ever
  waiters_.emplace(lsn, Waiting{std::move(ready), patience});
  forget_unawaited(lsn);
  start_flush_if_wanted(lock, reactor);
}

void Durability::let_go(const Error& error) {
  Waiters waiters;
  {
    const Lock lock(mutex_);
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      const auto next = std::next(at);
      if (at->second.patience == Patience::may_let_go) waiters.insert(waiters_.extract(at));
      at = next;
    }
    // Changes that were acknowledged before are still to be flushed as soon as they are written.
    if (!waiters.empty() && waiters_.lower_bound(waiters.rbegin()->first) == waiters_.end())
      waiters_.emplace(waiters.rbegin()->first, Waiting{[](const Status&) {}, Patience::endless});
  }
  tell(waiters, error);
}

std::optional<Error> Durability::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

void Durability::fail(Error error) {
  Waiters waiters;
  {
    const Lock lock(mutex_);
    if (failure_) return;
    failure_ = error;
    waiters.swap(waiters_);
    turn_.notify_all();
  }
  if (failure_handler_) failure_handler_(error);
  tell(waiters, error);
}

}  // namespace varve::log
