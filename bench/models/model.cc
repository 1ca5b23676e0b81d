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

std::uint64_t DeviceModel::serve(const Request& request, std::uint64_t now_ns) {
  const double overrun = now_ns > free_at_ns_ ? idle(static_cast<double>(now_ns - free_at_ns_) * 1e-9) : 0;
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
