// A device that is written only while its lease is held: the seat belt of everything in Varve that changes an image.
//
// Readers pass. The lease is taken at once where a superblock or a lease shows that the device is Varve's, else before the first write. A
// device of another filesystem is not touched before its user has decided to. From the moment at which the lease is lost every
// write and discard fails with EBUSY, or EIO where the device has failed. If a write of the lease has met that failure, flushes end with
// EIO as well: the kernel tells of what was lost once for each descriptor, and there is one for all. Blocks of the lease survive whatever
// is written over them through execute() (mkfs).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "io/block_device.h"
#include "lease/keeper.h"

namespace varve::lease {

struct Use {
  std::string program;  // "varve mount"
  std::string place;    // what is done, where: "/mnt/data"; may be empty
  bool takes_over = false;  // also from a holder that lives, which then writes nothing any more
};

// What `varve status` says of it.
struct LeaseFacts {
  bool is_held = false;
  bool may_be_shared = false;
  std::string holder;  // see describe()
  std::string why_lost;
  std::uint64_t look_age_ms = 0;  // of the last look that counts
};

class LeasedDevice : public io::BlockDevice, private io::WriteGuard {
 public:
  // Errc::in_use, with the holder's name, when another program that lives holds the lease; a device opened for reading only
  // looks. May wait until a holder that has gone without a word can be believed to be gone (Times::promise_ns).
  static Result<std::unique_ptr<LeasedDevice>> hold(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times = {});
  // The same for a path: remote::open_device(), then hold().
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
  std::string refusal() const override;
  std::uint64_t delivery_ns() const override { return below_->delivery_ns(); }
  // The kernel has claimed the block device for a mount, against every other use of it. A disk that stands on no file may stop then:
  // it is not looked at while nobody uses it.
  void note_claimed();
  LeaseFacts facts() const;  // any thread
  // Of a device opened for reading: who may write to it, see may_write_unseen(); empty: nobody.
  const std::string& other_holder() const { return other_holder_; }
  std::optional<io::Connection> connection() const override { return below_->connection(); }
  bool is_locked_by_another() override { return below_->is_locked_by_another(); }
  int execute(io::IoRequest& request) override;
  Status look_again() override { return below_->look_again(); }
  Status set_length(std::uint64_t bytes) override;

 private:
  LeasedDevice(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times);
  Status begin();
  Status claim();
  Status shut_out_others();
  Self self() const;
  Verdict may_send(std::uint64_t looked_after_ns) override;
  void look_soon() override;
  bool admits(const io::IoRequest& request);
  int why_refused() const;
  int judge(const io::IoRequest& request, int error) const;
  int write_around(io::IoRequest& request);

  const std::unique_ptr<io::BlockDevice> below_;
  const Use use_;
  const Times times_;
  Area area_;
  Mutex claim_mutex_{LockRank::lease_claim};
  std::atomic<bool> claimed_{false};
  bool released_ GUARDED_BY(claim_mutex_) = false;
  format::Lease lease_;  // as it was claimed
  std::uint32_t first_block_ = 0;  // as it was when the device was opened
  bool is_alone_ = false;          // see Self
  std::string other_holder_;
  Keeper keeper_;
};

}  // namespace varve::lease
