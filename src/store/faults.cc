#include "store/faults.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace varve::store {

Faults::Faults(io::BlockDevice& device, Clock& clock, const format::Superblock& super, bool read_only)
    : device_(device),
      clock_(clock),
      read_only_(read_only),
      first_(super.first_error),
      last_(super.last_error),
      watch_([this](const std::string& what) {
        read_only_ = true;
        {
          const Lock lock(mutex_);
          if (alarm_.empty()) alarm_ = what;
        }
        alarmed_ = true;
      }) {}

std::string Faults::reason() const {
  const Lock lock(mutex_);
  if (!reason_.empty()) return reason_;
  return !alarm_.empty() ? alarm_ : fmt::format("{} is mounted read-only", device_.name());
}

void Faults::go_read_only(const Error& failure) {
  const std::string refusal = device_.refusal();  // the cause, of which this failure may be only the first sign
  const Error why = refusal.empty() ? failure : Error(failure.code(), refusal);
  {
    const Lock lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = why.message();
  }
  read_only_ = true;
  if (read_only_call_) read_only_call_(why);
  spdlog::error("{}: read-only from now on: {}", device_.name(), why.message());
  note(why.code(), {}, {});
}

void Faults::settle_alarm() {
  if (!alarmed_.load(std::memory_order_relaxed) || !alarmed_.exchange(false)) return;
  std::string what;
  {
    const Lock lock(mutex_);
    what = alarm_;
  }
  go_read_only(Error(Errc::io, what));
}

void Faults::note(Errc code, BlockAddr address, Ino ino) {
  const Lock lock(mutex_);
  const format::ErrorEvent event{clock_.now(), static_cast<std::uint32_t>(code), address, ino};
  if (!first_.when.seconds) first_ = event;
  last_ = event;
  ++count_;
}

std::pair<format::ErrorEvent, format::ErrorEvent> Faults::first_and_last() const {
  const Lock lock(mutex_);
  return {first_, last_};
}

std::uint64_t Faults::count() const {
  const Lock lock(mutex_);
  return count_;
}

}  // namespace varve::store
