#include "io/batch.h"

#include "base/invariant.h"
#include "io/lent_reactor.h"
#include "io/transfer.h"

namespace varve::io {

IoRequest& Batch::add(IoKind kind, std::uint64_t offset) {
  IoRequest& request = requests_.emplace_back();
  request.kind = kind;
  request.offset = offset;
  return request;
}

bool Batch::fits(const IoRequest& request, std::size_t in_flight, std::uint64_t bytes_in_flight) const {
  const std::size_t most = device_.geometry().rotational ? kMostRotational : kMostRequests;
  return in_flight == 0 || (in_flight < most && bytes_in_flight + request.length <= kMostBytes);
}

Status Batch::run() {
  if (requests_.size() == 1) {  // the device may have a shorter way
    requests_.front().error = device_.execute(requests_.front());
    return outcome_of(0);
  }
  const LentReactor reactor;
  std::uint64_t bytes = 0;
  for (IoRequest& request : requests_) {
    while (!fits(request, reactor->in_flight(), bytes)) reactor->wait(-1);
    bytes += request.length;
    request.done = [&bytes](IoRequest& done) {
      INVARIANT(bytes >= done.length);
      bytes -= done.length;
    };
    device_.submit(*reactor, request);
  }
  while (reactor->in_flight() > 0) reactor->wait(-1);
  INVARIANT(bytes == 0);
  for (std::size_t i = 0; i < requests_.size(); ++i) TRY(outcome_of(i));
  return {};
}

Status Batch::outcome_of(std::size_t index) const {
  MEMORY_INVARIANT(index < requests_.size());
  return io::outcome_of(device_, requests_[index]);
}

}  // namespace varve::io
