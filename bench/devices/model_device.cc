#include "model_device.h"

#include <thread>

namespace varve::bench {

namespace {

Op op_of(io::IoKind kind) {
  switch (kind) {
    case io::IoKind::read: return Op::read;
    case io::IoKind::write: return Op::write;
    case io::IoKind::flush: return Op::flush;
    case io::IoKind::discard: return Op::discard;
  }
  return Op::flush;
}

}  // namespace

Timestamp DeviceClock::now() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t ns = monotonic_ns();
  return {static_cast<std::int64_t>(1'700'000'000 + ns / kSecond), static_cast<std::uint32_t>(ns % kSecond)};
}

void DeviceClock::advance(std::uint64_t ns) {
  const std::uint64_t elapsed = elapsed_ += ns;
  if (speed_ <= 0) return;
  const std::chrono::duration<double, std::nano> due(static_cast<double>(elapsed) / speed_);
  std::this_thread::sleep_until(began_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
}

void DeviceClock::run_at(double speed) {
  speed_ = speed;
  began_ = std::chrono::steady_clock::now();
}

ModelDevice::ModelDevice(io::BlockDevice& below, DeviceModel& model, DeviceClock& clock, bool discards)
    : below_(below), model_(model), clock_(clock), geometry_(below.geometry()) {
  constexpr std::uint32_t kRequestBytes = 512 << 10;  // as hosts of cards and sticks pass on at once
  geometry_.is_block_device = true;
  geometry_.request_bytes = kRequestBytes;
  geometry_.rotational = model.facts().rotational;
  geometry_.supports_discard = discards && model.facts().discards;
}

void ModelDevice::serve(const io::IoRequest& request) {
  clock_.advance(model_.serve({op_of(request.kind), request.offset, request.length, request.durable}, clock_.elapsed_ns()));
}

void ModelDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  serve(request);
  below_.submit(reactor, request);
}

int ModelDevice::execute(io::IoRequest& request) {
  serve(request);
  return below_.execute(request);
}

}  // namespace varve::bench
