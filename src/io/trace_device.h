// A decorator that counts and times what passes, and may tell it to a listener.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>

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

// How long the device was busy with requests. Of each it is the time since the one before was done: as if it served one after the other.
// All of them together are never more than the time that has passed.
struct DeviceTime {
  std::uint64_t reading_ns = 0;
  std::uint64_t writing_ns = 0;  // with flushes and discards

  std::uint64_t ns() const { return reading_ns + writing_ns; }
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
  void limit_holding(std::uint64_t ns) override { below_.limit_holding(ns); }
  Status look_again() override { return below_.look_again(); }
  Status set_length(std::uint64_t bytes) override { return below_.set_length(bytes); }

  // Called when a write has completed without error, by the thread that completes it. To be set before there are requests.
  using WriteListener = std::function<void(const IoRequest&, std::uint64_t began_ns, std::uint64_t ended_ns)>;
  void on_written(WriteListener listener) { written_ = std::move(listener); }

  TraceCounts counts() const;
  void reset();

  // As long as one lives the requests that its thread submits are counted apart. Of one thread at a time; they nest.
  class Apart {
   public:
    explicit Apart(TraceDevice& device) : device_(device), before_(device.apart_.exchange(std::this_thread::get_id())) {}
    ~Apart() { device_.apart_ = before_; }
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

   private:
    TraceDevice& device_;
    const std::thread::id before_;
  };
  // These count requests that have completed, since the device was made.
  DeviceTime time_apart() const { return time_of(true); }
  DeviceTime time_of_others() const { return time_of(false); }

 private:
  struct Cell {
    std::atomic<std::uint64_t> requests, bytes, errors, durable, total_ns;
  };

  struct Spent {
    std::atomic<std::uint64_t> reading_ns, writing_ns;
  };

  std::uint64_t submitted(const IoRequest& request);  // what finished() is to be told
  void finished(const IoRequest& request, std::uint64_t note);
  void spend(const IoRequest& request, bool apart, std::uint64_t since_ns, std::uint64_t now_ns);
  DeviceTime time_of(bool apart) const { return {spent_[apart].reading_ns, spent_[apart].writing_ns}; }

  std::unique_ptr<BlockDevice> owned_;
  BlockDevice& below_;
  Listener listener_;
  WriteListener written_;
  Clock& clock_;
  std::uint64_t start_ns_;
  std::array<Cell, 4> cells_{};
  std::atomic<std::thread::id> apart_{};
  std::atomic<std::uint64_t> free_at_ns_{0};  // when the last request was done
  std::array<Spent, 2> spent_{};              // of others; apart
};

}  // namespace varve::io
