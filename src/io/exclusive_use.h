// Locks against a second use of a device or image, under whatever name.
//
// Readers share, a writer is alone. Image files take a flock. Block devices take a record lock: udev reads a flock there as "do
// not probe", which would stop its symbolic links from being updated for as long as the device is mounted.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace varve::io {

// Errc::in_use when the kernel has given the device to a mount, swap, RAID, ... Only a probe: a mount through fuseblk lets the
// kernel claim the device, which fails while we claim it. Image files pass. Names the user if `names_holder`.
Status check_unclaimed(const struct stat& status, const std::string& path, bool names_holder);

// The kernel's exclusive claim on a block device, against all mounts and all other claims under any of the device's names; nothing for an
// image file. Not to be held while the device is mounted.
class KernelClaim {
 public:
  static Result<KernelClaim> take(const std::string& path, bool is_block_device, bool names_holder = true);
  KernelClaim(KernelClaim&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  KernelClaim& operator=(KernelClaim&&) = delete;
  ~KernelClaim();

 private:
  explicit KernelClaim(int fd) : fd_(fd) {}
  int fd_;
};

enum class Certainty {
  alone,   // nothing else can write to this storage while the lock is held
  unsure,  // another machine, or another name of this one that cannot be seen or locked from here, might
};

// Locks the opened file until it is closed, then looks for uses of the same storage under other names: through loop devices, the
// image below a loop device. Each user locks before it looks, so that of two at a time at least one sees the other. Errc::in_use
// with the user's name, if `names_holder`; Errc::unsupported where the filesystem has no locks.
Result<Certainty> lock_exclusively(int fd, const struct stat& status, const std::string& path, bool writable, bool names_holder);

}  // namespace varve::io
