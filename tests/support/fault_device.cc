#include "support/fault_device.h"

#include "io/forwarding_queue.h"

namespace varve::test {

using io::IoKind;
using io::IoRequest;

namespace {

bool moves_data(const IoRequest& request) { return request.kind == IoKind::read || request.kind == IoKind::write; }

bool matches(const Fault& fault, const IoRequest& request) {
  if (fault.kind && *fault.kind != request.kind) return false;
  if (!fault.touches_block) return true;
  const std::uint64_t first = block_of(request.offset);
  return *fault.touches_block >= first && *fault.touches_block < first + block_of(request.length);
}

void flip_bit(const IoRequest& request, std::uint64_t bit) {
  std::uint64_t byte = bit / 8 % request.length;
  for (const iovec& part : request.iov) {
    if (byte < part.iov_len) {
      static_cast<std::byte*>(part.iov_base)[byte] ^= std::byte{1} << (bit % 8);
      return;
    }
    byte -= part.iov_len;
  }
}

// Cuts a request to its first bytes, a number of whole blocks.
void shorten(IoRequest& request, std::uint64_t bytes) {
  request.length = bytes;
  std::size_t parts = 0;
  for (; bytes > 0; ++parts) {
    iovec& part = request.iov[parts];
    if (part.iov_len > bytes) part.iov_len = bytes;
    bytes -= part.iov_len;
  }
  request.iov.resize(parts);
}

}  // namespace

class FaultQueue : public io::ForwardingQueue {
 public:
  explicit FaultQueue(FaultDevice& device) : ForwardingQueue(device.below_.make_queue()), device_(device) {}

  void submit(IoRequest& request) override {
    const std::optional<Fault> fault = device_.strike(request);
    if (!fault) return below().submit(request);
    switch (fault->action) {
      case Fault::Action::fail:
      case Fault::Action::vanish:
        return finish_later(request, fault->error);
      case Fault::Action::partial:
        return partial(request, fault->error);
      case Fault::Action::flip:
        return flip(request, fault->bit);
      case Fault::Action::lose:
        return request.kind == IoKind::read ? below().submit(request) : finish_later(request, 0);
      case Fault::Action::misdirect:
        return misdirect(request, fault->shift_blocks);
    }
  }

 private:
  void partial(IoRequest& request, int error) {
    const std::uint64_t half = block_of(request.length) / 2 * kBlockSize;
    if (!moves_data(request) || half == 0) return finish_later(request, error);
    const auto iov = request.iov;
    const std::uint64_t length = request.length;
    shorten(request, half);
    forward(request, [iov, length, error](IoRequest& finished) {
      finished.iov = iov;
      finished.length = length;
      finished.error = error;
      pass_up(finished);
    });
  }

  void flip(IoRequest& request, std::uint64_t bit) {
    if (request.kind != IoKind::read) return below().submit(request);
    forward(request, [bit](IoRequest& finished) {
      if (!finished.error) flip_bit(finished, bit);
      pass_up(finished);
    });
  }

  void misdirect(IoRequest& request, std::int64_t shift_blocks) {
    if (!moves_data(request)) return below().submit(request);
    const std::uint64_t meant = request.offset;
    request.offset += static_cast<std::uint64_t>(shift_blocks) * kBlockSize;
    forward(request, [meant](IoRequest& finished) {
      finished.offset = meant;
      pass_up(finished);
    });
  }

  FaultDevice& device_;
};

FaultDevice::FaultDevice(std::unique_ptr<io::BlockDevice> below) : owned_(std::move(below)), below_(*owned_) {}

FaultDevice::FaultDevice(io::BlockDevice& below) : below_(below) {}

std::unique_ptr<io::IoQueue> FaultDevice::make_queue() { return std::make_unique<FaultQueue>(*this); }

void FaultDevice::add(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(Armed{fault});
}

void FaultDevice::heal() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  vanished_.reset();
}

std::uint64_t FaultDevice::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

std::uint64_t FaultDevice::submitted(IoKind kind) const {
  const std::lock_guard lock(mutex_);
  return submitted_[static_cast<std::size_t>(kind)];
}

// The fault that hits this request, if any. Every fault counts every request; the first one that is due strikes.
std::optional<Fault> FaultDevice::strike(const IoRequest& request) {
  const std::lock_guard lock(mutex_);
  ++submitted_[static_cast<std::size_t>(request.kind)];
  std::optional<Fault> due = vanished_;
  for (Armed& armed : faults_) {
    if (!matches(armed.fault, request)) continue;
    ++armed.seen;
    if (!due && armed.seen >= armed.fault.nth && armed.seen - armed.fault.nth < armed.fault.times) due = armed.fault;
  }
  if (due) ++hits_;
  if (due && due->action == Fault::Action::vanish) vanished_ = due;
  return due;
}

}  // namespace varve::test
