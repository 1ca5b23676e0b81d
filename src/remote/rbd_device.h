// An image of a Ceph cluster, by librbd, whose threads answer.
//
// librbd connects again by itself, and repeats what was not answered. Its cache is off: an answer to a write means that the disks of all
// replicas have it. So nothing need be kept for a repetition, every write is durable, and a flush only waits.
//
// One writer: the image's exclusive lock is held, and given to nobody (shut_out()). A client that breaks it has the
// cluster refuse this one first. So no write can arrive later than that, however long it has waited, and WriteGuard need not be asked.
//
// Patience. A request that was not answered in time has failed, and with it the device: all later changes end with EIO. At the end this
// client has itself refused by the cluster, so that nothing that it has given up can arrive later.
#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "io/block_device.h"
#include "remote/rbd_image.h"

namespace varve::remote {

// Thread-safe. All requests must have ended before its destruction.
class RbdDevice : public io::BlockDevice {
 public:
  static Result<std::unique_ptr<RbdDevice>> open(const std::string& name, io::Access access, unsigned patience_s);

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return read_only_; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  std::string refusal() const override;
  Result<bool> shut_out(io::ShutOut others) override;
  bool is_locked_by_another() override;
  Status look_again() override;

 private:
  struct Sent {
    RbdDevice* device;
    io::IoRequest* request;
  };

  RbdDevice(std::string name, io::Access access, unsigned patience_s, std::unique_ptr<RbdImage> image, std::uint64_t bytes);
  int send(io::IoRequest& request, rbd_completion_t completion);
  static void answered(rbd_completion_t completion, void* context);
  void finish(io::IoRequest& request, std::int64_t result);
  int judge(const io::IoRequest& request, int error);
  void fail(const std::string& why);

  const std::string name_;
  const bool read_only_;
  const unsigned patience_s_;
  io::Geometry geometry_;
  mutable Mutex mutex_;
  std::string failure_ GUARDED_BY(mutex_);
  std::unique_ptr<RbdImage> image_;  // the first to go: then nothing answers any more
};

}  // namespace varve::remote
