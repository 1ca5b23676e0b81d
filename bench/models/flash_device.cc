#include "models/flash_device.h"

#include <algorithm>

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

DeviceModel::Duration FlashDevice::seconds_for(const Request& request) {
  switch (request.op) {
    case Op::read:
      return read(request);
    case Op::write:
      return write(request);
    case Op::flush:
      return flush();
    case Op::discard:
      ftl_->discard(request.offset / kFlashPage, request.length / kFlashPage);
      return {timing_.write_request, 0};
  }
  return {};
}

DeviceModel::Duration FlashDevice::read(const Request& request) {
  const double bytes = static_cast<double>(request.length) / timing_.read_rate;
  done().energy.spend(PowerState::read, bytes, timing_.read_watts);
  return {timing_.read_request + (reads_.goes_on(request) ? 0 : timing_.scattered_read), bytes};
}

DeviceModel::Duration FlashDevice::flush() {
  const double work = account(ftl_->flush());
  const double seconds = dirty_ ? timing_.flush : 0;
  dirty_ = false;
  return {timing_.read_request, work + seconds};
}

double FlashDevice::account(const FlashWork& work) {
  Work& sum = done();
  sum.programmed += work.programmed * kFlashPage;
  sum.copied += work.copied * kFlashPage;
  sum.erases += work.erases;
  const auto seconds = [](std::uint64_t pages, double rate) { return pages ? static_cast<double>(pages * kFlashPage) / rate : 0; };
  const double total = seconds(work.programmed - work.copied - work.cached, timing_.program_rate) +
                       seconds(work.cached, timing_.cache_rate) + seconds(work.copied, timing_.copy_rate) +
                       static_cast<double>(work.erases) * timing_.erase;
  sum.energy.spend(PowerState::write, total, timing_.program_watts);
  return total;
}

DeviceModel::Duration FlashDevice::write(const Request& request) {
  const std::uint64_t first = request.offset / kFlashPage, end = (request.end() + kFlashPage - 1) / kFlashPage;
  double work = account(ftl_->write(first, end - first));
  const bool scattered = !writes_.goes_on(request);
  done().seeks += scattered ? 1 : 0;
  dirty_ = true;
  if (request.durable) {
    work += account(ftl_->flush());
    if (timing_.flush > 0) {
      work += timing_.flush;
      dirty_ = false;
    }
  }
  return {timing_.write_request + (scattered ? timing_.scattered_write : 0), work};
}

double FlashDevice::idle(double seconds) {
  double left = seconds - timing_.tidy_after;
  while (left > 0) {
    const FlashWork work = ftl_->tidy();
    if (!work.programmed && !work.erases) return 0;
    const double took = account(work);
    done().background_ns += static_cast<std::uint64_t>(std::min(took, left) * 1e9);
    left -= took;
  }
  return left < 0 && seconds > timing_.tidy_after ? -left : 0;
}

}  // namespace varve::bench
