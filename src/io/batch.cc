#include "io/batch.h"

#include <cerrno>

#include "base/invariant.h"
#include "io/lent_reactor.h"
#include "io/transfer.h"

namespace varve::io {

IoRequest& Batch::add(IoKind kind, std::uint64_t offset, Came came) {
  Entry& entry = requests_.emplace_back();
  entry.request.kind = kind;
  entry.request.offset = offset;
  entry.came = std::move(came);
  return entry.request;
}

bool Batch::fits(const IoRequest& request, std::size_t in_flight, std::uint64_t bytes_in_flight) const {
  const std::size_t most = device_.geometry().rotational ? limits_.rotational : limits_.requests;
  return in_flight == 0 || (in_flight < most && bytes_in_flight + request.length <= limits_.bytes);
}

Status Batch::run(const std::function<bool()>& stop) {
  stopped_ = false;
  if (requests_.size() == 1 && !stop) {  // the device may have a shorter way
    Entry& only = requests_.front();
    only.request.error = device_.execute(only.request);
    if (only.came) only.came(only.request);
    return outcome_of(0);
  }
  const LentReactor reactor;
  std::uint64_t bytes = 0;
  for (Entry& entry : requests_) {
    while (!stopped_ && !fits(entry.request, reactor->in_flight(), bytes)) reactor->wait(-1);
    stopped_ = stopped_ || (stop && stop());
    if (stopped_) {
      entry.request.error = ECANCELED;
      continue;
    }
    bytes += entry.request.length;
    entry.request.done = [&bytes, &came = entry.came](IoRequest& done) {
      INVARIANT(bytes >= done.length);
      bytes -= done.length;
      if (came) came(done);
    };
    device_.submit(*reactor, entry.request);
  }
  while (reactor->in_flight() > 0) reactor->wait(-1);
  INVARIANT(bytes == 0);
  for (std::size_t i = 0; i < requests_.size(); ++i) TRY(outcome_of(i));
  return {};
}

Status Batch::outcome_of(std::size_t index) const {
  MEMORY_INVARIANT(index < requests_.size());
  return io::outcome_of(device_, requests_[index].request);
}

}  // namespace varve::io
