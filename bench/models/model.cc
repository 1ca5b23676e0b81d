#include "models/model.h"

#include <algorithm>
#include <cmath>

namespace varve::bench {

std::uint64_t Work::busy_ns() const {
  std::uint64_t sum = 0;
  for (const Kind& kind : kinds) sum += kind.ns;
  return sum;
}

namespace {

// Devices here know pages only.
Request in_pages(const Request& request) {
  constexpr std::uint64_t kPage = 4096;
  Request out = request;
  out.offset = request.offset / kPage * kPage;
  out.length = (request.end() + kPage - 1) / kPage * kPage - out.offset;
  return out;
}

}  // namespace

// Work that it has put off comes first; then it goes to sleep, step by step, and has to be woken.
double DeviceModel::rest(double seconds, bool woken) {
  const std::uint64_t before = work_.background_ns;
  const double overrun = idle(seconds);
  const double worked = static_cast<double>(work_.background_ns - before) * 1e-9;
  if (overrun > 0 || worked >= seconds) return overrun;
  return power_.rest(seconds - worked, facts_.idle_watts, work_.energy, woken);
}

void DeviceModel::leave_alone(std::uint64_t until_ns) {
  if (until_ns <= free_at_ns_) return;
  const double overrun = rest(static_cast<double>(until_ns - free_at_ns_) * 1e-9, false);
  free_at_ns_ = until_ns + static_cast<std::uint64_t>(overrun * 1e9);
}

std::uint64_t DeviceModel::serve(const Request& request, std::uint64_t now_ns) {
  const double overrun = now_ns > free_at_ns_ ? rest(static_cast<double>(now_ns - free_at_ns_) * 1e-9, true) : 0;
  const auto ns = static_cast<std::uint64_t>(std::llround((overrun + seconds_for(in_pages(request))) * 1e9));
  free_at_ns_ = std::max(now_ns, free_at_ns_) + ns;
  Work::Kind& kind = work_[request.op];
  ++kind.requests;
  kind.bytes += request.length;
  kind.ns += ns;
  kind.longest_ns = std::max(kind.longest_ns, ns);
  return ns;
}

}  // namespace varve::bench
