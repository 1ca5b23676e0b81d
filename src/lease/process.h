// Which process holds a lease, and whether it can still write.
#pragma once

#include <string>

#include "format/lease.h"

namespace varve::lease {

// A user of a device: itself, what its lock covers, and whether that lock says anything about all others.
struct Self {
  format::Process process;
  format::LockedObject object;
  bool may_be_shared = false;  // io::Geometry
  bool takes_over = false;     // also from a holder that lives
  bool is_alone = false;       // the storage's own lock keeps all others from writing: io::BlockDevice::shut_out()
};

// Of the calling process. `place` says for messages what it does with the device.
format::Process this_process(const std::string& program, const std::string& place);

// The lock object of a device or image file by its path: the lowest that a chain of loop devices stands on. Of an export on
// the network, something that tells its name from others. Zeros for the rest.
format::LockedObject object_of(const std::string& path);

enum class Life {
  alive,
  dead,     // it will not write again: it ended, or its kernel did and nobody else reaches the device
  unknown,  // on another machine, or in another container: it has to be asked
};

// Of another holder. A copy of an image that was mounted names a process that lives, but holds another object: unknown.
Life life_of(const format::Lease& lease, const Self& self);

// Whether a holder may write although a program that only reads could open the device, and lock it against others of this kernel. Where
// that lock reaches everybody, the lease is that of a copy, or of a program that has ended.
bool may_write_unseen(const format::Lease& lease, const Self& self);

// "process 12 (varve mount, /mnt/data) on rose, since 2026-01-02 03:04:05 UTC"
std::string describe(const format::Process& process, const Timestamp& since);

}  // namespace varve::lease
