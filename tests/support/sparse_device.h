// A device of any size in memory, which takes as much of that as was written to it. Thread-safe.
#pragma once

#include <array>
#include <cstring>
#include <unordered_map>

#include "base/mutex.h"
#include "io/block_device.h"
#include "io/reactor.h"
#include "io/transfer.h"

namespace varve::test {

class SparseDevice : public io::BlockDevice {
 public:
  explicit SparseDevice(std::uint64_t bytes) {
    geometry_.size_bytes = bytes;
    geometry_.supports_discard = true;
    geometry_.backend = "memory";
  }

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return false; }
  std::size_t blocks_written() const {
    const Lock lock(mutex_);
    return blocks_.size();
  }
  Status set_length(std::uint64_t bytes) override {
    const Lock lock(mutex_);
    std::erase_if(blocks_, [bytes](const auto& entry) { return entry.first * kBlockSize >= bytes; });
    geometry_.size_bytes = bytes;
    return {};
  }

  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    const auto carry_out = [](void* context, io::IoRequest& due, std::uint64_t) {
      due.error = static_cast<SparseDevice*>(context)->execute(due);
    };
    request.intercept(carry_out, this);
    reactor.finish_later(request, 0);
  }
  int execute(io::IoRequest& request) override {
    const Lock lock(mutex_);
    if (const int error = io::check_request(request, geometry_, false)) return error;
    std::uint64_t block = request.offset / kBlockSize;
    if (request.kind == io::IoKind::discard)
      for (const std::uint64_t end = block + request.length / kBlockSize; block < end; ++block) blocks_.erase(block);
    for (const iovec& part : request.iov)
      for (std::size_t at = 0; at < part.iov_len; at += kBlockSize, ++block)
        carry_out_one(request.kind, block, static_cast<std::byte*>(part.iov_base) + at);
    return 0;
  }

 private:
  void carry_out_one(io::IoKind kind, std::uint64_t block, std::byte* bytes) REQUIRES(mutex_) {
    if (kind == io::IoKind::write) {
      std::memcpy(blocks_[block].data(), bytes, kBlockSize);
    } else if (const auto found = blocks_.find(block); found != blocks_.end()) {
      std::memcpy(bytes, found->second.data(), kBlockSize);
    } else {
      std::memset(bytes, 0, kBlockSize);
    }
  }

  io::Geometry geometry_;
  const std::string name_ = "sparse";
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, std::array<std::byte, kBlockSize>> blocks_ GUARDED_BY(mutex_);
};

}  // namespace varve::test
