#include "fuse/transport/device_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/logging.h"
#include "fuse/protocol/protocol.h"
#include "fuse/transport/device_message.h"

namespace varve::fuse {

namespace {

constexpr std::size_t kBatch = 64;  // messages before completions of the reactor get their turn
constexpr std::size_t kMessageOffset = BufferPool::kPage - kWriteHeaderBytes;
constexpr std::uint64_t kWindow = 16;           // messages after which a port looks at its share of them
constexpr std::uint64_t kFairShare = 4;         // a quarter
constexpr std::uint64_t kShortAway = 2'000'000;  // ns that a thread looks away; doubled each time up to
constexpr std::uint64_t kLongAway = 32'000'000;
constexpr std::size_t kStartEvery = 4;             // messages after which the device gets to see what they ask for
constexpr int kAlone = 4;                        // messages that came one by one
constexpr std::uint64_t kReportEvery = 10'000'000'000;  // ns
constexpr std::size_t kLargeTransfer = 32u << 10;  // takes so long to serve that the others should look meanwhile

// Of a read: the connection has ended (ECONNRESET is that of a socket), or the descriptor is none of a connection. Others,
// ENOMEM and EFAULT where memory is limited, pass; what was to be read then, the kernel has answered itself.
bool means_end(int error) {
  constexpr std::array kEnds = {ENODEV, ECONNABORTED, ECONNRESET, EBADF, EPERM, EINVAL};
  return std::ranges::find(kEnds, error) != kEnds.end();
}

// The kernel wakes every thread that watches the device, and one of them gets the message. For the others that is a
// wake-up of a CPU for nothing, which costs the caller more than its request does. So a thread that gets few of the
// messages looks away for a moment: one caller is served by one thread, the one on its CPU. A caller there sends its next
// message as soon as it has been answered, before this thread goes on. Where messages come one by one, the caller is on
// another CPU, and its thread should look again.
class DevicePort : public Port {
 public:
  DevicePort(int fd, io::Reactor& reactor, const std::shared_ptr<BufferPool>& pool, MessageSink& sink, Readers& readers,
             Arrivals& arrivals)
      : fd_(fd), reactor_(reactor), pool_(pool), sink_(sink), readers_(readers), arrivals_(arrivals), taking_(arrivals) {
    resume();
  }
  ~DevicePort() override {
    pause();
    INVARIANT(free_.size() == messages_.size());
  }

  void pause() override {
    if (away_until_) be_back();
    if (watching_) reactor_.unwatch(fd_);
    watching_ = false;
  }

  void resume() override {
    if (watching_ || ended_) return;
    watch();
    watching_ = true;
  }

  std::int64_t rest() override {
    if (!away_until_) return -1;
    const std::uint64_t now = Clock::system().monotonic_ns();
    if (now < away_until_ && readers_.any_away()) return static_cast<std::int64_t>(away_until_ - now);
    look_again();
    return -1;
  }

 private:
  void drain() {
    std::size_t taken = 0;
    while (taken < kBatch && watching_ && receive()) {
      if (++taken % kStartEvery != 0 || reactor_.in_flight() == 0) continue;
      reactor_.kick();
      if (readers_.any_away() && reactor_.in_flight() > kStartEvery) readers_.rouse();
    }
    taken_ += taken;
    if (taken != 1) alone_ = 0;
    if (taken == 1 && reactor_.in_flight() == 0 && ++alone_ >= kAlone && readers_.any_away()) {
      alone_ = 0;
      readers_.rouse();
    }
    const std::uint64_t all = readers_.messages() - window_start_;
    if (all < kWindow || !watching_ || away_until_) return;
    if (taken_ * kFairShare >= all)
      away_ns_ = kShortAway;
    else if (!readers_.expects_large(Clock::system().monotonic_ns()))
      look_away();
    start_window();
  }

  void start_window() {
    taken_ = 0;
    window_start_ = readers_.messages();
  }

  void look_away() {
    reactor_.unwatch(fd_);
    away_until_ = Clock::system().monotonic_ns() + away_ns_;
    away_ns_ = std::min(2 * away_ns_, kLongAway);
    readers_.add_away(reactor_);
  }

  void look_again() {
    watch();  // first: where memory is lacking for it, this is tried again
    be_back();
  }

  void be_back() {
    away_until_ = 0;
    readers_.remove_away(reactor_);
    start_window();
  }

  void watch() {
    reactor_.watch(fd_, [this] { drain(); });
  }

  // False when there is nothing more to read now.
  bool receive() {
    if (!is_ready()) return false;
    std::byte* const message = buffer_.data() + kMessageOffset;
    taking_.begin();
    const ssize_t got = ::read(fd_, message, buffer_.size() - kMessageOffset);
    if (got > 0) {
      const std::span<const std::byte> bytes{message, static_cast<std::size_t>(got)};
      const bool large = is_large(bytes);
      DeviceMessage* const taken = taken_message(bytes);
      taking_.end();
      readers_.count_message();
      if (large) {
        readers_.expect_large(Clock::system().monotonic_ns());
        if (readers_.any_away()) readers_.rouse();
      }
      if (taken) sink_.receive(*taken);
      return true;
    }
    taking_.end();
    if (got < 0 && (errno == EINTR || errno == ENOENT)) return true;  // ENOENT: given up before it was read
    if (got < 0 && errno == EAGAIN) return false;
    if (got == 0 || means_end(errno))
      end(got == 0 || errno == ENODEV ? 0 : errno);
    else
      try_later(errno);
    return false;
  }

  DeviceMessage* taken_message(std::span<const std::byte> bytes) {
    DeviceMessage& message = *free_.back();
    if (!message.take(bytes, buffer_)) {
      log_error("a message of {} bytes that makes no sense: ignored", bytes.size());
      return nullptr;
    }
    free_.pop_back();
    return &message;
  }

  // Memory for a message, which would be lost if it were lacking once that is read.
  bool is_ready() {
    if (!buffer_) buffer_ = pool_->try_take(BufferPool::kMaxBytes);
    if (!buffer_) {
      try_later(ENOMEM);
      return false;
    }
    if (free_.empty()) add_message();
    sink_.prepare();
    return true;
  }

  void add_message() {
    free_.reserve(messages_.size() + 1);  // releasing one needs no memory
    messages_.push_back(std::make_unique<DeviceMessage>(fd_, pool_, free_, arrivals_));
    free_.push_back(messages_.back().get());
  }

  // Messages wait with the kernel meanwhile, or another thread takes them.
  void try_later(int error) {
    const std::uint64_t now = Clock::system().monotonic_ns();
    if (now >= next_report_) {
      log_error("messages of the kernel cannot be taken at the moment: {}", std::strerror(error));
      next_report_ = now + kReportEvery;
    }
    look_away();
  }

  // One that takes long to serve, by its data or by those it asks for.
  static bool is_large(std::span<const std::byte> message) {
    if (message.size() >= kLargeTransfer) return true;
    fuse_in_header header;
    fuse_read_in in;
    if (message.size() < sizeof header + sizeof in) return false;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.opcode != FUSE_READ) return false;
    std::memcpy(&in, message.data() + sizeof header, sizeof in);
    return in.size >= kLargeTransfer;
  }

  void end(int error) {
    pause();
    ended_ = true;
    sink_.disconnected(error);
  }

  const int fd_;
  io::Reactor& reactor_;
  const std::shared_ptr<BufferPool>& pool_;
  MessageSink& sink_;
  Readers& readers_;
  Arrivals& arrivals_;
  Arrivals::Taking taking_;
  Lease buffer_;  // what the next message is read into
  std::vector<std::unique_ptr<DeviceMessage>> messages_;
  std::vector<DeviceMessage*> free_;
  bool watching_ = false;
  bool ended_ = false;
  std::uint64_t taken_ = 0;  // messages since…
  std::uint64_t window_start_ = 0;  // …so many of all
  int alone_ = 0;
  std::uint64_t away_ns_ = kShortAway;
  std::uint64_t away_until_ = 0;   // monotonic ns; 0: looking
  std::uint64_t next_report_ = 0;  // the same; of errors that pass
};

}  // namespace

void Readers::add_away(io::Reactor& reactor) {
  const Lock lock(mutex_);
  away_.push_back(&reactor);
  away_count_.store(away_.size(), std::memory_order_relaxed);
}

void Readers::remove_away(io::Reactor& reactor) {
  const Lock lock(mutex_);
  std::erase(away_, &reactor);
  away_count_.store(away_.size(), std::memory_order_relaxed);
}

void Readers::rouse() {
  const Lock lock(mutex_);
  for (io::Reactor* reactor : away_) reactor->wake();
  away_.clear();
  away_count_.store(0, std::memory_order_relaxed);
}

DeviceTransport::DeviceTransport(int fd) : fd_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

std::unique_ptr<Port> DeviceTransport::open(io::Reactor& reactor, const std::shared_ptr<BufferPool>& pool, MessageSink& sink) {
  return std::make_unique<DevicePort>(fd_, reactor, pool, sink, readers_, arrivals_);
}

int DeviceTransport::send(std::span<const iovec> parts) { return write_answer(fd_, parts); }

bool DeviceTransport::settle(std::size_t most, const Arrivals::Limits& limits) {
  const auto waits = [this] {
    pollfd device{fd_, POLLIN, 0};
    return ::poll(&device, 1, 0) > 0 && (device.revents & POLLIN) != 0;
  };
  return arrivals_.settle(most, waits, limits);
}

}  // namespace varve::fuse
