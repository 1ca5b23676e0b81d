#include "io/trace_device.h"

#include <algorithm>

namespace varve::io {

bool TraceWriter::operator()(const TraceEvent& event) {
  static constexpr char kOps[] = {'R', 'W', 'F', 'D'};  // by IoKind
  const std::string line = fmt::format("{} {} {} {} {}\n", event.time_ns, kOps[static_cast<std::size_t>(event.kind)],
                                       event.offset, event.length, event.durable ? 'S' : '-');
  const Lock lock(mutex_);
  out_ << line;
  return out_.good();
}

void TraceWriter::note(const std::string& text) {
  const Lock lock(mutex_);
  out_ << '#' << text << '\n';
}

TraceDevice::TraceDevice(std::unique_ptr<BlockDevice> below, Listener listener, Clock& clock)
    : owned_(std::move(below)),
      below_(*owned_),
      listener_(std::move(listener)),
      clock_(clock),
      start_ns_(clock.monotonic_ns()) {}

TraceDevice::TraceDevice(BlockDevice& below, Listener listener, Clock& clock)
    : below_(below), listener_(std::move(listener)), clock_(clock), start_ns_(clock.monotonic_ns()) {}

void TraceDevice::submit(Reactor& reactor, IoRequest& request) {
  const std::uint64_t start = clock_.monotonic_ns();
  submitted(request, start);
  const auto completed = [](void* context, IoRequest& done, std::uint64_t since) {
    auto& self = *static_cast<TraceDevice*>(context);
    self.finished(done, since);
  };
  try {
    request.intercept(completed, this, start);
    below_.submit(reactor, request);
  } catch (...) {  // nothing is on its way
    if (request.kind != IoKind::read) end_writing(start);
    throw;
  }
}

int TraceDevice::execute(IoRequest& request) {
  const std::uint64_t start = clock_.monotonic_ns();
  submitted(request, start);
  request.error = below_.execute(request);
  finished(request, start);
  return request.error;
}

void TraceDevice::submitted(const IoRequest& request, std::uint64_t now_ns) {
  Cell& cell = cells_[static_cast<std::size_t>(request.kind)];
  cell.requests.fetch_add(1, std::memory_order_relaxed);
  if (request.durable) cell.durable.fetch_add(1, std::memory_order_relaxed);
  // The last one to finish reads this after the first has set it, which is on its way until then.
  if (request.kind != IoKind::read && writers_.fetch_add(1) == 0) writing_since_ns_ = now_ns;
  if (listener_) listener_(TraceEvent{now_ns - start_ns_, request.kind, request.offset, request.length, request.durable});
}

void TraceDevice::end_writing(std::uint64_t now_ns) {
  const std::uint64_t since = writing_since_ns_;  // before this one has ended, so that nobody can have begun anew
  if (writers_.fetch_sub(1) == 1) writing_ns_.fetch_add(now_ns - std::min(now_ns, since), std::memory_order_relaxed);
}

void TraceDevice::finished(const IoRequest& request, std::uint64_t since_ns) {
  const std::uint64_t now_ns = clock_.monotonic_ns(), took_ns = now_ns - since_ns;
  if (request.kind != IoKind::read) end_writing(now_ns);
  if (written_ && request.kind == IoKind::write && !request.error) written_(request, since_ns, now_ns);
  Cell& cell = cells_[static_cast<std::size_t>(request.kind)];
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  };
  add(cell.bytes, request.error ? 0 : request.length);
  add(cell.errors, request.error ? 1 : 0);
  add(cell.total_ns, took_ns);
}

TraceCounts TraceDevice::counts() const {
  TraceCounts counts;
  for (std::size_t kind = 0; kind < cells_.size(); ++kind) {
    const Cell& cell = cells_[kind];
    IoCounts& out = counts.kinds[kind];
    out.requests = cell.requests;
    out.bytes = cell.bytes;
    out.errors = cell.errors;
    out.durable = cell.durable;
    out.total_ns = cell.total_ns;
  }
  return counts;
}

void TraceDevice::reset() {
  for (Cell& cell : cells_) cell.requests = cell.bytes = cell.errors = cell.durable = cell.total_ns = 0;
}

}  // namespace varve::io
