#include "log/io_context.h"

#include <cerrno>

#include "log/write_cost.h"

namespace varve::log {

namespace {
thread_local io::IoQueue* serving_queue = nullptr;
}

ServingScope::ServingScope(io::IoQueue& queue) : former_(serving_queue) { serving_queue = &queue; }
ServingScope::~ServingScope() { serving_queue = former_; }
io::IoQueue* ServingScope::current() { return serving_queue; }

IoContext::IoContext(io::BlockDevice& device, bool background)
    : device_(device), background_(background), write_cost_(std::make_unique<WriteCost>(device.geometry().rotational)) {
  if (!background_) inline_queue_ = device_.make_queue();
}

IoContext::~IoContext() {
  inline_queue_.reset();
  for (io::IoRequest* request : inline_flights_) delete request;
}

void IoContext::set_service_queue(io::IoQueue* queue) {
  const Lock lock(mutex_);
  service_queue_ = queue;
}

void IoContext::count(const io::IoRequest& request) {
  switch (request.kind) {
    case io::IoKind::read:
      counters_.reads.fetch_add(1, std::memory_order_relaxed);
      counters_.bytes_read.fetch_add(request.length, std::memory_order_relaxed);
      break;
    case io::IoKind::write:
      counters_.writes.fetch_add(1, std::memory_order_relaxed);
      counters_.bytes_written.fetch_add(request.length, std::memory_order_relaxed);
      if (request.durable) counters_.flushes.fetch_add(1, std::memory_order_relaxed);
      break;
    case io::IoKind::flush:
      counters_.flushes.fetch_add(1, std::memory_order_relaxed);
      break;
    case io::IoKind::discard:
      counters_.discards.fetch_add(1, std::memory_order_relaxed);
      break;
  }
}

void IoContext::start(std::unique_ptr<io::IoRequest> request, std::function<void(int)> done) {
  count(*request);
  const bool is_inline = !serving_queue && inline_queue_;
  request->done = [this, is_inline, done = std::move(done)](io::IoRequest& finished) mutable {
    const int error = finished.error;
    const auto callback = std::move(done);  // `finished` owns this closure: keep what is called alive past its deletion
    if (is_inline) inline_flights_.erase(&finished);
    delete &finished;
    callback(error);
  };
  // It belongs to the queue once that has taken it, which may lack the memory for that.
  if (serving_queue) {
    serving_queue->submit(*request);
    (void)request.release();
  } else if (is_inline) {
    inline_flights_.insert(request.get());
    inline_queue_->submit(*request.release());
  } else if (post_to_service(*request)) {
    (void)request.release();
  } else {
    io::IoRequest& refused = *request.release();
    refused.error = ECANCELED;
    refused.done(refused);
  }
}

bool IoContext::post_to_service(io::IoRequest& request) {
  const Lock lock(mutex_);
  if (!service_queue_) return false;
  service_queue_->post([queue = service_queue_, &request] { queue->submit(request); });
  return true;
}

unsigned IoContext::pump() { return inline_queue_ ? inline_queue_->poll() : 0; }

void IoContext::drain() {
  while (inline_queue_ && inline_queue_->in_flight()) inline_queue_->wait(-1);
}

io::IoQueue& IoContext::inline_queue() { return *inline_queue_; }

}  // namespace varve::log
