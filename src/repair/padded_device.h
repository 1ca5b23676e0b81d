// A device whose end is missing, as large as the filesystem on it once was: what is not there cannot be read.
#pragma once

#include "io/block_device.h"

namespace varve::repair {

class PaddedDevice : public io::BlockDevice {
 public:
  // `below` must outlive this.
  PaddedDevice(io::BlockDevice& below, std::uint64_t blocks) : below_(below), geometry_(below.geometry()) {
    if (blocks <= geometry_.blocks()) return;
    geometry_.missing_bytes += blocks * kBlockSize - geometry_.size_bytes;
    geometry_.size_bytes = blocks * kBlockSize;
  }

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return true; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;

 private:
  io::BlockDevice& below_;
  io::Geometry geometry_;
};

}  // namespace varve::repair
