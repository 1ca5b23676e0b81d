// The classic transport: read(2) and writev(2) on /dev/fuse, or on anything that keeps message boundaries (tests use a
// SOCK_SEQPACKET pair).
#pragma once

#include <atomic>
#include <vector>

#include "base/mutex.h"
#include "fuse/transport/arrivals.h"
#include "fuse/transport/transport.h"

namespace varve::fuse {

// What the ports of one device know of each other: how many messages all have taken, and whose threads look away from
// the device for a moment (see DevicePort). Thread-safe.
class Readers {
 public:
  void count_message() { messages_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }

  void add_away(io::Reactor& reactor);
  void remove_away(io::Reactor& reactor);
  bool any_away() const { return away_count_.load(std::memory_order_relaxed) > 0; }
  void rouse();  // all that are away look again
  // Large transfers: for a while all keep looking, so that one thread copies while another one takes the next message.
  void expect_large(std::uint64_t now_ns) { large_until_.store(now_ns + kLargeWhile, std::memory_order_relaxed); }
  bool expects_large(std::uint64_t now_ns) const { return now_ns < large_until_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kLargeWhile = 20'000'000;  // ns
  std::atomic<std::uint64_t> messages_{0}, large_until_{0};
  Mutex mutex_;
  std::vector<io::Reactor*> away_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> away_count_{0};
};

class DeviceTransport : public Transport {
 public:
  explicit DeviceTransport(int fd);  // makes it non-blocking; does not close it
  std::unique_ptr<Port> open(io::Reactor& reactor, const std::shared_ptr<BufferPool>& pool, MessageSink& sink) override;
  int send(std::span<const iovec> parts) override;
  bool settle(std::size_t most, const Arrivals::Limits& limits) override;
  Arrivals::Writes writes() const override { return arrivals_.writes(); }

 private:
  const int fd_;
  Readers readers_;
  Arrivals arrivals_;
};

}  // namespace varve::fuse
