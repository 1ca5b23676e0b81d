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
  const auto to_ns = [](double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); };
  const double overrun = now_ns > free_at_ns_ ? rest(static_cast<double>(now_ns - free_at_ns_) * 1e-9, true) : 0;
  const Duration duration = seconds_for(in_pages(request));
  const auto lane = std::ranges::min_element(lanes_);
  // A flush waits for all that came before it.
  const std::uint64_t begin = std::max(now_ns, request.op == Op::flush ? free_at_ns_ : *lane);
  const std::uint64_t medium = begin + to_ns(overrun + duration.beside);
  const std::uint64_t waits = medium_free_at_ns_ > medium ? medium_free_at_ns_ - medium : 0;
  const std::uint64_t end = begin + waits + to_ns(overrun + duration.beside + duration.alone);
  Work::Kind& kind = work_[request.op];
  ++kind.requests;
  kind.bytes += request.length;
  kind.ns += end - std::min(end, std::max(now_ns, free_at_ns_));  // time in which it served others as well is theirs
  kind.longest_ns = std::max(kind.longest_ns, end - begin);
  *lane = medium_free_at_ns_ = done_at_ns_ = end;
  free_at_ns_ = std::max(free_at_ns_, end);
  return end - begin;
}

}  // namespace varve::bench
