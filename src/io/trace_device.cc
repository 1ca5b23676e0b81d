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

namespace {
constexpr std::uint64_t kApart = 1ULL << 63;  // of a note: the rest is when it was submitted
}

void TraceDevice::submit(Reactor& reactor, IoRequest& request) {
  const std::uint64_t note = submitted(request);
  const auto completed = [](void* context, IoRequest& done, std::uint64_t told) {
    auto& self = *static_cast<TraceDevice*>(context);
    self.finished(done, told);
  };
  request.intercept(completed, this, note);
  below_.submit(reactor, request);
}

int TraceDevice::execute(IoRequest& request) {
  const std::uint64_t note = submitted(request);
  request.error = below_.execute(request);
  finished(request, note);
  return request.error;
}

std::uint64_t TraceDevice::submitted(const IoRequest& request) {
  const std::uint64_t now_ns = clock_.monotonic_ns();
  Cell& cell = cells_[static_cast<std::size_t>(request.kind)];
  cell.requests.fetch_add(1, std::memory_order_relaxed);
  if (request.durable) cell.durable.fetch_add(1, std::memory_order_relaxed);
  if (listener_) listener_(TraceEvent{now_ns - start_ns_, request.kind, request.offset, request.length, request.durable});
  // A thread sees what it has set itself, and no other one has its number.
  return now_ns | (apart_.load(std::memory_order_relaxed) == std::this_thread::get_id() ? kApart : 0);
}

void TraceDevice::spend(const IoRequest& request, bool apart, std::uint64_t since_ns, std::uint64_t now_ns) {
  std::uint64_t free_at = free_at_ns_;
  while (free_at < now_ns && !free_at_ns_.compare_exchange_weak(free_at, now_ns)) {
  }
  Spent& spent = spent_[apart];
  (request.kind == IoKind::read ? spent.reading_ns : spent.writing_ns) += now_ns - std::min(now_ns, std::max(since_ns, free_at));
}

void TraceDevice::finished(const IoRequest& request, std::uint64_t note) {
  const std::uint64_t since_ns = note & ~kApart, now_ns = clock_.monotonic_ns();
  if (!request.was_held) spend(request, note & kApart, since_ns, now_ns);  // else it has waited for room, and not for the device
  if (written_ && request.kind == IoKind::write && !request.error && !request.was_held) written_(request, since_ns, now_ns);
  Cell& cell = cells_[static_cast<std::size_t>(request.kind)];
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  };
  add(cell.bytes, request.error ? 0 : request.length);
  add(cell.errors, request.error ? 1 : 0);
  add(cell.total_ns, now_ns - since_ns);
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
