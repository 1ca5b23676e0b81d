#include "device/faults.h"

#include <fmt/format.h>

#include "base/logging.h"

namespace varve::device {

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
  log_error("{}: read-only from now on: {}", device_.name(), why.message());
  (void)add(Kind::other, why.code(), {}, {});
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

Faults::Kind Faults::kind_of(Errc code) {
  switch (code) {
    case Errc::io:
      return Kind::unreadable;
    case Errc::corrupt:
      return Kind::damaged;
    default:
      return Kind::other;
  }
}

bool Faults::add(Kind kind, Errc code, BlockAddr address, Ino ino) {
  const Lock lock(mutex_);
  const format::ErrorEvent event{clock_.now(), static_cast<std::uint32_t>(code), address, ino};
  if (!first_.when.seconds) first_ = event;
  last_ = event;
  if (kind == Kind::other) return ++counts_.other, false;
  ++(kind == Kind::unreadable ? counts_.unreadable : counts_.damaged);
  return address && places_.add(address, clock_.monotonic_ns());
}

void Faults::note(Errc code, BlockAddr address, Ino ino) { (void)add(kind_of(code), code, address, ino); }

void Faults::note_data(Errc code, BlockAddr address, Ino ino, const std::string& what) {
  if (!add(kind_of(code), code, address, ino)) return;
  constexpr std::uint64_t kMostLines = 20;  // an hour
  const std::uint64_t places = counts().places_last_hour;
  if (places <= kMostLines) log_error("{}", what);
  if (places == kMostLines) log_error("{}: so many blocks are bad that for an hour no more are named here", device_.name());
}

std::pair<format::ErrorEvent, format::ErrorEvent> Faults::first_and_last() const {
  const Lock lock(mutex_);
  return {first_, last_};
}

FaultCounts Faults::counts() const {
  const Lock lock(mutex_);
  FaultCounts counts = counts_;
  const std::uint64_t now_ns = clock_.monotonic_ns();
  counts.places_last_hour = places_.within(BadPlaces::kHourNs, now_ns);
  counts.places_last_day = places_.within(BadPlaces::kDayNs, now_ns);
  return counts;
}

}  // namespace varve::device
