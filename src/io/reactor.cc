#include "io/reactor.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/invariant.h"
#include "base/logging.h"
#include "io/block_device.h"
#include "io/poll_reactor.h"
#include "io/ring.h"
#include "io/ring_reactor.h"

namespace varve::io {

namespace {

IoRequest& request_of(RingEntry& entry) { return static_cast<IoRequest&>(entry); }

bool rings_are_unwanted() {
  const char* found = std::getenv("VARVE_IO");
  return found && std::string_view(found) == "threads";
}

}  // namespace

void IoRequest::complete(int result) {
  MEMORY_INVARIANT(result >= 0);
  error = result;
  while (!interceptors_.empty()) {
    const Interceptor last = interceptors_.back();
    interceptors_.pop_back();
    last.after(last.context, *this, last.note);
    if (std::exchange(taken_back_, false)) return;
  }
  if (done) done(*this);
}

int Reactor::probe_ring() {
  Ring ring;
  return ring.open(4);
}

std::unique_ptr<Reactor> Reactor::make(ReactorKind kind, unsigned depth) {
  if (kind == ReactorKind::poll || rings_are_unwanted()) return std::make_unique<PollReactor>();
  Ring ring;
  if (const int error = ring.open(depth)) {
    log_debug("no io_uring for a further thread: {}", std::strerror(error));
    return std::make_unique<PollReactor>();
  }
  return std::make_unique<RingReactor>(std::move(ring));
}

void Reactor::submit(RingEntry&) {
  log_critical("an entry for a ring where there is none");
  std::abort();
}

// --- requests ---------------------------------------------------------------------------------------------------------

void Reactor::begin(IoRequest& request) {
  if (static_cast<boost::intrusive::list_base_hook<>&>(request).is_linked()) return;
  request.reactor_ = this;
  begun_.push_back(request);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
}

void Reactor::end_wait() {
  MEMORY_INVARIANT(waits_ > 0);
  --waits_;
}

void Reactor::begin_elsewhere(IoRequest& request) {
  begin(request);
  ++elsewhere_;
}

void Reactor::finish(IoRequest& request, int error) {
  MEMORY_INVARIANT(static_cast<boost::intrusive::list_base_hook<>&>(request).is_linked());
  MEMORY_INVARIANT(request.reactor_ == this);
  begun_.erase(begun_.iterator_to(request));
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  request.complete(error);
}

void Reactor::finish_later(IoRequest& request, int error) {
  MEMORY_INVARIANT(error >= 0);
  begin(request);
  request.error = error;
  finished_.push_back(request);
}

// Both signal under the lock: once the owner has seen the request, this thread no longer touches the reactor, which may end.
void Reactor::finish_from_elsewhere(IoRequest& request, int error) {
  request.error = error;
  const Lock lock(mutex_);
  back_.push_back(request);
  anything_from_elsewhere_ = true;  // as in the mailbox
  mailbox_.signal();
}

void Reactor::submit_from_elsewhere(BlockDevice& device, IoRequest& request) {
  request.carrier = &device;
  const Lock lock(mutex_);
  again_.push_back(request);
  anything_from_elsewhere_ = true;  // as in the mailbox
  mailbox_.signal();
}

void Reactor::hand_over(BlockDevice& device, IoRequest& request) {
  if (is_mine()) return device.submit(*this, request);
  request.carrier = &device;
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  const Lock lock(mutex_);
  handed_.push_back(request);
  anything_from_elsewhere_ = true;  // as in the mailbox
  mailbox_.signal();
}

unsigned Reactor::finish_all(Line& line) {
  unsigned ran = 0;
  for (; !line.empty(); ++ran) {
    IoRequest& request = request_of(line.front());
    line.pop_front();
    finish(request, request.error);
  }
  return ran;
}

unsigned Reactor::submit_handed() {
  Line handed;
  {
    const Lock lock(mutex_);
    handed.swap(handed_);
  }
  unsigned ran = 0;
  for (; !handed.empty(); ++ran) {
    IoRequest& request = request_of(handed.front());
    handed.pop_front();
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    MEMORY_INVARIANT(request.carrier != nullptr);
    request.carrier->submit(*this, request);
  }
  return ran;
}

unsigned Reactor::submit_again() {
  Line again;
  {
    const Lock lock(mutex_);
    again.swap(again_);
  }
  unsigned ran = 0;
  for (; !again.empty(); ++ran) {
    IoRequest& request = request_of(again.front());
    again.pop_front();
    MEMORY_INVARIANT(elsewhere_ > 0);
    --elsewhere_;
    request.carrier->submit(*this, request);
  }
  return ran;
}

unsigned Reactor::run_arrivals() {
  unsigned ran = mailbox_.run();
  Line finished;  // only those so far: a callback that submits again must not keep us here for ever
  finished.swap(finished_);
  ran += finish_all(finished);
  if (anything_from_elsewhere_.load()) {
    Line back;
    {
      const Lock lock(mutex_);
      anything_from_elsewhere_.store(false, std::memory_order_relaxed);
      back.swap(back_);
    }
    MEMORY_INVARIANT(elsewhere_ >= back.size());
    elsewhere_ -= back.size();
    ran += submit_handed();
    ran += submit_again();
    ran += finish_all(back);
  }
  return ran;
}

void Reactor::abandon_all() {
  for (;;) {
    Line back, again;
    {
      const Lock lock(mutex_);
      back.swap(back_);
      again.swap(again_);
    }
    elsewhere_ -= back.size() + again.size();
    back.clear();
    again.clear();
    if (elsewhere_ == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  finished_.clear();
  Line handed;
  {
    const Lock lock(mutex_);
    handed.swap(handed_);
  }
  const auto tell = [](IoRequest& request) {
    if (request.abandoned) request.abandoned(request);
  };
  handed.clear_and_dispose([&](RingEntry* entry) { tell(request_of(*entry)); });
  begun_.clear_and_dispose([&](IoRequest* request) { tell(*request); });
}

}  // namespace varve::io
