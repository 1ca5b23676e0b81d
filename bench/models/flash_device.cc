#include "models/flash_device.h"

namespace varve::bench {

bool FlashDevice::Runs::goes_on(const Request& request) {
  for (std::uint64_t& end : ends_) {
    if (end != request.offset) continue;
    end = request.end();
    return true;
  }
  ends_[next_] = request.end();
  next_ = (next_ + 1) % ends_.size();
  return false;
}

double FlashDevice::seconds_for(const Request& request) {
  switch (request.op) {
    case Op::read:
      return read(request);
    case Op::write:
      return write(request);
    case Op::flush: {
      const double seconds = dirty_ ? timing_.flush : 0;
      dirty_ = false;
      return timing_.read_request + seconds;
    }
    case Op::discard:
      ftl_->discard(request.offset / kFlashPage, request.length / kFlashPage);
      return timing_.write_request;
  }
  return 0;
}

double FlashDevice::read(const Request& request) {
  const double bytes = static_cast<double>(request.length) / timing_.read_rate;
  done().energy.spend(PowerState::read, bytes, timing_.read_watts);
  return timing_.read_request + (reads_.goes_on(request) ? 0 : timing_.scattered_read) + bytes;
}

double FlashDevice::write(const Request& request) {
  const std::uint64_t first = request.offset / kFlashPage, end = (request.end() + kFlashPage - 1) / kFlashPage;
  const FlashWork work = ftl_->write(first, end - first);
  const bool scattered = !writes_.goes_on(request);
  Work& sum = done();
  sum.programmed += work.programmed * kFlashPage;
  sum.copied += work.copied * kFlashPage;
  sum.erases += work.erases;
  sum.seeks += scattered ? 1 : 0;
  dirty_ = true;
  const double own = static_cast<double>((work.programmed - work.copied) * kFlashPage) / timing_.program_rate;
  const double copies = static_cast<double>(work.copied * kFlashPage) / timing_.copy_rate;
  const double erases = static_cast<double>(work.erases) * timing_.erase;
  sum.energy.spend(PowerState::write, own + copies + erases, timing_.program_watts);
  double seconds = timing_.write_request + (scattered ? timing_.scattered_write : 0) + own + copies + erases;
  if (request.durable && timing_.flush > 0) {
    seconds += timing_.flush;
    dirty_ = false;
  }
  return seconds;
}

}  // namespace varve::bench
