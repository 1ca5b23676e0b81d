#include "log/io_context.h"

#include <cerrno>
#include <utility>

#include "log/stream_meter.h"
#include "log/write_cost.h"

namespace varve::log {

IoContext::IoContext(io::BlockDevice& device, bool background, Clock& clock, std::uint64_t erase_unit)
    : device_(device, {}, clock), background_(background), write_cost_(std::make_unique<WriteCost>(device.geometry().rotational)),
      streams_(std::make_unique<StreamMeter>(device.geometry().rotational ? 0 : erase_unit, device.geometry().before)) {
  device_.on_written([meter = streams_.get()](const io::IoRequest& request, std::uint64_t began_ns, std::uint64_t ended_ns) {
    meter->observe(request.offset, request.length, began_ns, ended_ns, request.durable);
  });
  if (!background_) own_ = &open_service();
}

IoContext::~IoContext() = default;

// By the thread that runs it: a ring that ends interrupts the thread that made it.
io::Reactor& IoContext::open_service() {
  auto reactor = io::Reactor::make(background_ ? io::ReactorKind::best : io::ReactorKind::poll);
  reactor->kick();  // from now on it is this thread's
  const Lock lock(mutex_);
  service_ = std::move(reactor);
  return *service_;
}

void IoContext::end_service() {
  const Lock lock(mutex_);
  ended_ = true;
}

void IoContext::close_service() {
  std::unique_ptr<io::Reactor> gone;
  const Lock lock(mutex_);
  gone = std::move(service_);
  own_ = nullptr;
}

void IoContext::wake_service() {
  const Lock lock(mutex_);
  if (service_) service_->wake();
}

bool IoContext::hand_to_service(io::IoRequest& request) {
  const Lock lock(mutex_);
  if (ended_ || !service_) return false;
  service_->hand_over(device_, request);
  return true;
}

void IoContext::start(io::IoRequest& request, io::Reactor* reactor) {
  if (reactor) return device_.submit(*reactor, request);
  if (hand_to_service(request)) return;
  request.error = ECANCELED;
  request.done(request);
}

unsigned IoContext::pump() { return own_ ? own_->poll() : 0; }

void IoContext::wait() {
  if (own_) own_->wait(-1);
}

void IoContext::drain() {
  while (own_ && own_->in_flight()) own_->wait(-1);
}

}  // namespace varve::log
