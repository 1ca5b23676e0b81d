#include "io/forwarding_queue.h"

namespace varve::io {

unsigned ForwardingQueue::poll() {
  const unsigned ran = below_->poll();
  return ran + run_local();
}

unsigned ForwardingQueue::wait(std::int64_t timeout_ns) {
  if (local_.empty()) return below_->wait(timeout_ns);
  return poll();
}

unsigned ForwardingQueue::run_local() {
  unsigned ran = 0;
  for (std::size_t left = local_.size(); left > 0 && !local_.empty(); --left, ++ran) {
    IoRequest& request = *local_.front();
    local_.pop_front();
    pass_up(request);
  }
  return ran;
}

void ForwardingQueue::finish_later(IoRequest& request, int error) {
  request.error = error;
  local_.push_back(&request);
}

void ForwardingQueue::forward(IoRequest& request, Done after) {
  if (unused_.empty()) unused_.push_back(&hooks_.emplace_back());
  Hook* const hook = unused_.back();
  unused_.pop_back();
  hook->done = std::move(request.done);
  hook->after = std::move(after);
  request.done = [this, hook](IoRequest& finished) {
    // Giving the request its own `done` back destroys this very lambda: no capture may be used after that.
    std::vector<Hook*>& unused = unused_;
    Hook* const own = hook;
    const Done then = std::move(own->after);
    finished.done = std::move(own->done);
    unused.push_back(own);
    then(finished);
  };
  below_->submit(request);
}

}  // namespace varve::io
