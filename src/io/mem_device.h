// A device in memory: for tests, simulations and dry runs.
//
// Sparse and copy-on-write: snapshot() costs a pointer per 512 KiB of device. Requests are executed and completed
// inside poll() and wait() of the reactor in the order of submission, so single-threaded use is deterministic.
// Everything is "durable" at once; what a crash may do to unflushed writes is CrashDevice's business (tests/support).
// Thread-safe, snapshot() included.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.h"
#include "io/block_device.h"
#include "io/mem_store.h"

namespace varve::io {

class MemDevice : public BlockDevice {
 public:
  // The size is rounded down to whole blocks.
  explicit MemDevice(std::uint64_t size_bytes, std::string name = "memory");
  explicit MemDevice(MemStore store, std::string name = "memory");

  // Reads a raw image file, or writes one (sparse: blocks of zeros become holes).
  static Result<std::unique_ptr<MemDevice>> load(const std::string& path);
  Status save(const std::string& path) const;

  // An independent device with the same contents.
  std::unique_ptr<MemDevice> snapshot() const;
  MemStore store() const;

  const Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return false; }
  void submit(Reactor& reactor, IoRequest& request) override;
  int execute(IoRequest& request) override;
  Status set_length(std::uint64_t bytes) override;

  // Straight access to any bytes inside the device, for tests and tools that patch images.
  void peek(std::uint64_t offset, std::span<std::byte> out) const;
  void poke(std::uint64_t offset, std::span<const std::byte> data);

 private:
  Geometry geometry_;
  std::string name_;
  mutable Mutex mutex_;
  MemStore store_ GUARDED_BY(mutex_);
};

}  // namespace varve::io
