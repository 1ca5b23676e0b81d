#include "support/fault_device.h"

#include "io/reactor.h"
#include "support/interception.h"

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

FaultDevice::FaultDevice(std::unique_ptr<io::BlockDevice> below) : owned_(std::move(below)), below_(*owned_) {}

FaultDevice::FaultDevice(io::BlockDevice& below) : below_(below) {}

void FaultDevice::submit(io::Reactor& reactor, IoRequest& request) {
  const std::optional<Fault> fault = strike(request);
  if (!fault) return below_.submit(reactor, request);
  switch (fault->action) {
    case Fault::Action::fail:
    case Fault::Action::vanish:
      return reactor.finish_later(request, fault->error);
    case Fault::Action::partial:
      return partial(reactor, request, fault->error);
    case Fault::Action::flip:
      return flip(reactor, request, fault->bit);
    case Fault::Action::lose:
      return request.kind == IoKind::read ? below_.submit(reactor, request) : reactor.finish_later(request, 0);
    case Fault::Action::misdirect:
      return misdirect(reactor, request, fault->shift_blocks);
  }
}

void FaultDevice::partial(io::Reactor& reactor, IoRequest& request, int error) {
  const std::uint64_t half = block_of(request.length) / 2 * kBlockSize;
  if (!moves_data(request) || half == 0) return reactor.finish_later(request, error);
  after(request, [iov = request.iov, length = request.length, error](IoRequest& finished) {
    finished.iov = iov;
    finished.length = length;
    finished.error = error;
  });
  shorten(request, half);
  below_.submit(reactor, request);
}

void FaultDevice::flip(io::Reactor& reactor, IoRequest& request, std::uint64_t bit) {
  if (request.kind == IoKind::read)
    after(request, [bit](IoRequest& finished) {
      if (!finished.error) flip_bit(finished, bit);
    });
  below_.submit(reactor, request);
}

void FaultDevice::misdirect(io::Reactor& reactor, IoRequest& request, std::int64_t shift_blocks) {
  if (!moves_data(request)) return below_.submit(reactor, request);
  after(request, [meant = request.offset](IoRequest& finished) { finished.offset = meant; });
  request.offset += static_cast<std::uint64_t>(shift_blocks) * kBlockSize;
  below_.submit(reactor, request);
}

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
