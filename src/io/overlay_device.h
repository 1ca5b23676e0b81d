// Reads from a device below, keeps all changes in memory: the device below is never written.
//
// For `fsck -n` of an unclean image and for dry runs. A flush succeeds and means nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "io/block_device.h"
#include "io/mem_store.h"

namespace varve::io {

class OverlayDevice : public BlockDevice {
 public:
  // Keeps the device below, or only borrows it (it must then outlive this one).
  explicit OverlayDevice(std::unique_ptr<BlockDevice> below);
  explicit OverlayDevice(BlockDevice& below);

  const Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return false; }  // whatever the device below is
  void submit(Reactor& reactor, IoRequest& request) override;
  int execute(IoRequest& request) override;

 private:
  void submit_read(Reactor& reactor, IoRequest& request);
  // These look at whole requests, under the lock.
  bool covers(const IoRequest& request) const;
  void change(const IoRequest& request);
  void patch(const IoRequest& request) const;

  std::unique_ptr<BlockDevice> owned_;
  BlockDevice& below_;
  Geometry geometry_;
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, MemStore::BlockPtr> changed_ GUARDED_BY(mutex_);  // by block; null: zeros.
};

}  // namespace varve::io
