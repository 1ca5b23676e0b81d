#include "device/io_context.h"

#include <cerrno>
#include <utility>

#include "base/cpu_waits.h"
#include "device/stream_meter.h"
#include "device/write_cost.h"

namespace varve::device {

namespace {

// May much of that be what the calling thread has waited for a CPU since it was told of the last write?
bool was_late(std::uint64_t took_ns) {
  static thread_local std::uint64_t before = 0;
  const std::uint64_t waited = cpu_wait_of_thread_ns();
  return 8 * (waited - std::exchange(before, waited)) > took_ns;
}

}  // namespace

IoContext::IoContext(io::BlockDevice& device, bool background, Clock& clock, std::uint64_t erase_unit)
    : device_(device, {}, clock), background_(background), write_cost_(std::make_unique<WriteCost>(device.geometry().rotational)),
      streams_(std::make_unique<StreamMeter>(device.geometry().rotational ? 0 : erase_unit, device.geometry().before)) {
  device_.on_written([this](const io::IoRequest& request, std::uint64_t began_ns, std::uint64_t ended_ns) {
    const bool late = background_ && streams_->measures() && was_late(ended_ns - began_ns);
    streams_->observe(request.offset, request.length, began_ns, ended_ns, {.durable = request.durable, .late = late});
  });
  if (!background_) own_ = &open_service();
}

IoContext::~IoContext() = default;

std::uint64_t IoContext::cpu_wait_of_thread_ns() const { return background_ ? varve::cpu_wait_of_thread_ns() : 0; }
std::uint64_t IoContext::cpu_wait_of_process_ns() const { return background_ ? varve::cpu_wait_of_process_ns() : 0; }

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

}  // namespace varve::device
