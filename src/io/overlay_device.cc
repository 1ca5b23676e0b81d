#include "io/overlay_device.h"

#include <cstring>

#include "io/reactor.h"
#include "io/transfer.h"

namespace varve::io {

namespace {

// Calls visit(block, bytes) for every block of a request's buffers.
template <class Visit>
void for_each_block(const IoRequest& request, Visit visit) NO_THREAD_SAFETY_ANALYSIS {  // the caller holds what `visit` requires
  std::uint64_t block = block_of(request.offset);
  for (const iovec& part : request.iov)
    for (std::size_t at = 0; at < part.iov_len; at += kBlockSize)
      visit(block++, static_cast<std::byte*>(part.iov_base) + at);
}

}  // namespace

OverlayDevice::OverlayDevice(std::unique_ptr<BlockDevice> below)
    : owned_(std::move(below)), below_(*owned_), geometry_(below_.geometry()) {
  geometry_.supports_discard = true;
}

OverlayDevice::OverlayDevice(BlockDevice& below) : below_(below), geometry_(below.geometry()) {
  geometry_.supports_discard = true;
}

void OverlayDevice::submit(Reactor& reactor, IoRequest& request) {
  if (const int error = check_request(request, geometry_, false)) return reactor.finish_later(request, error);
  if (request.kind == IoKind::read) return submit_read(reactor, request);
  if (request.kind != IoKind::flush) change(request);
  reactor.finish_later(request, 0);
}

// A block below may be unreadable: it is not even asked where the overlay has all.
void OverlayDevice::submit_read(Reactor& reactor, IoRequest& request) {
  if (covers(request)) {
    patch(request);
    return reactor.finish_later(request, 0);
  }
  const auto completed = [](void* context, IoRequest& done, std::uint64_t) {
    if (!done.error) static_cast<const OverlayDevice*>(context)->patch(done);
  };
  request.intercept(completed, this);
  below_.submit(reactor, request);
}

int OverlayDevice::execute(IoRequest& request) {
  if (const int error = check_request(request, geometry_, false)) return error;
  if (request.kind == IoKind::flush) return 0;
  if (request.kind != IoKind::read) {
    change(request);
    return 0;
  }
  if (!covers(request))
    if (const int error = below_.execute(request)) return error;
  patch(request);
  return 0;
}

bool OverlayDevice::covers(const IoRequest& request) const {
  const Lock lock(mutex_);
  bool all = true;
  for_each_block(request, [&](std::uint64_t block, std::byte*) REQUIRES(mutex_) { all = all && changed_.contains(block); });
  return all;
}

void OverlayDevice::change(const IoRequest& request) {
  const Lock lock(mutex_);
  if (request.kind == IoKind::discard) {
    for (std::uint64_t i = 0; i < block_of(request.length); ++i) changed_[block_of(request.offset) + i] = nullptr;
    return;
  }
  for_each_block(request, [&](std::uint64_t block, std::byte* bytes) REQUIRES(mutex_) {
    changed_[block] = MemStore::make_block(std::span<const std::byte, kBlockSize>(bytes, kBlockSize));
  });
}

void OverlayDevice::patch(const IoRequest& request) const {
  const Lock lock(mutex_);
  for_each_block(request, [&](std::uint64_t block, std::byte* bytes) REQUIRES(mutex_) {
    const auto found = changed_.find(block);
    if (found == changed_.end()) return;
    if (found->second) {
      std::memcpy(bytes, found->second->bytes.data(), kBlockSize);
    } else {
      std::memset(bytes, 0, kBlockSize);
    }
  });
}

}  // namespace varve::io
