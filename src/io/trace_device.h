// A decorator that counts and times what passes, and may tell it to a listener.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "io/block_device.h"

namespace varve::io {

// Counters of one kind of request: requests and durable ones when they are submitted, the rest when they have completed.
struct IoCounts {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t durable = 0;  // writes
  std::uint64_t total_ns = 0;
};

struct TraceCounts {
  std::array<IoCounts, 4> kinds;  // by IoKind

  const IoCounts& operator[](IoKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  IoCounts& operator[](IoKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
  std::uint64_t flushes() const { return (*this)[IoKind::flush].requests + (*this)[IoKind::write].durable; }
};

struct TraceEvent {
  std::uint64_t time_ns = 0;  // of the submission, since the device was made
  IoKind kind = IoKind::read;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool durable = false;
};

// Writes events as lines `t_ns op byte_off byte_len flags`: op R, W, D or F; flags S for a durable write, else "-". A line "#mark NAME"
// begins a phase, other lines with '#' are notes. Thread-safe. The stream must outlive it.
class TraceWriter {
 public:
  explicit TraceWriter(std::ostream& out) : out_(out) {}
  bool operator()(const TraceEvent& event);  // false: the stream takes no more
  void mark(const std::string& name) { note("mark " + name); }
  void note(const std::string& text);

 private:
  Mutex mutex_;
  std::ostream& out_ GUARDED_BY(mutex_);
};

class TraceDevice : public BlockDevice {
 public:
  // Called at each submission, by the submitting thread; events of different threads may come out of order by a little.
  using Listener = std::function<void(const TraceEvent&)>;

  // Keeps the device below, or only borrows it (it must then outlive this one).
  explicit TraceDevice(std::unique_ptr<BlockDevice> below, Listener listener = {}, Clock& clock = Clock::system());
  explicit TraceDevice(BlockDevice& below, Listener listener = {}, Clock& clock = Clock::system());

  const Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  std::string refusal() const override { return below_.refusal(); }
  void submit(Reactor& reactor, IoRequest& request) override;
  int execute(IoRequest& request) override;
  Status look_again() override { return below_.look_again(); }
  Status set_length(std::uint64_t bytes) override { return below_.set_length(bytes); }

  // Called when a write has completed without error, by the thread that completes it. To be set before there are requests.
  using WriteListener = std::function<void(const IoRequest&, std::uint64_t began_ns, std::uint64_t ended_ns)>;
  void on_written(WriteListener listener) { written_ = std::move(listener); }

  TraceCounts counts() const;
  void reset();
  // How long the device has been busy with anything but reads: at least one such request was on its way. Not reset.
  std::uint64_t writing_ns() const { return writing_ns_.load(std::memory_order_relaxed); }

 private:
  struct Cell {
    std::atomic<std::uint64_t> requests, bytes, errors, durable, total_ns;
  };

  void submitted(const IoRequest& request, std::uint64_t now_ns);
  void finished(const IoRequest& request, std::uint64_t since_ns);
  void end_writing(std::uint64_t now_ns);

  std::unique_ptr<BlockDevice> owned_;
  BlockDevice& below_;
  Listener listener_;
  WriteListener written_;
  Clock& clock_;
  std::uint64_t start_ns_;
  std::array<Cell, 4> cells_{};
  std::atomic<std::uint64_t> writers_{0}, writing_since_ns_{0}, writing_ns_{0};
};

}  // namespace varve::io
