// A device that is written only while its lease is held: the seat belt of everything in Varve that changes an image.
//
// Readers pass. The lease is taken at once where a superblock or a lease shows that the device is Varve's, else before the first write: a
// device of another filesystem is not touched before its user has decided to. From the moment at which the lease is lost every
// write and discard fails with EBUSY. Blocks of the lease survive whatever is written over them through execute() (mkfs).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "io/block_device.h"
#include "lease/keeper.h"

namespace varve::lease {

struct Use {
  std::string program;  // "varve mount"
  std::string place;    // what is done, where: "/mnt/data"; may be empty
};

class LeasedDevice : public io::BlockDevice {
 public:
  // Errc::in_use, with the holder's name, when another program that lives holds the lease; a device opened for reading only
  // looks. May wait until a holder that has gone without a word can be believed to be gone (Times::promise_ns).
  static Result<std::unique_ptr<LeasedDevice>> hold(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times = {});
  // The same for a path: io::open_device(), then hold().
  static Result<std::unique_ptr<LeasedDevice>> open(const std::string& path, const io::OpenOptions& options, Use use);
  ~LeasedDevice() override;

  // After the last write, before anybody is told that the device is free. Nothing can be written afterwards.
  Status release();

  // See Keeper::on_lost(). Nothing comes of a device that has no lease yet.
  void on_lost(std::function<void(const std::string& why)> lost);

  const io::Geometry& geometry() const override { return below_->geometry(); }
  const std::string& name() const override { return below_->name(); }
  bool read_only() const override { return below_->read_only(); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  std::string refusal() const override { return keeper_.why_lost(); }
  int execute(io::IoRequest& request) override;

 private:
  LeasedDevice(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times);
  Status begin();
  Status claim();
  bool admits(const io::IoRequest& request);
  int write_around(io::IoRequest& request);

  const std::unique_ptr<io::BlockDevice> below_;
  const Use use_;
  const Times times_;
  Area area_;
  Mutex claim_mutex_;
  std::atomic<bool> claimed_{false};
  bool released_ GUARDED_BY(claim_mutex_) = false;
  std::uint32_t first_block_ = 0;  // as it was when the device was opened
  Keeper keeper_;
};

}  // namespace varve::lease
