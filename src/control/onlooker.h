// What a program that only reads can tell of a machine that may have the filesystem mounted.
//
// The lease names its holder, and stays as it is for as long as that lives (src/lease): nothing in it is renewed, and to ask the holder
// is to write. So a reader can only watch whether something is written, where the storage has no lock of its own that tells more. A
// holder that is idle, and one that has ended without a word, look the same to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "format/lease.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::control {

// How long to watch: a mount that is used writes more often, and a status is not to be waited for.
inline constexpr std::chrono::milliseconds kGlance{2000};

enum class Presence : std::uint8_t {
  nobody,   // no lease, or that of a program that is known to have ended
  unknown,  // a holder that may have ended
  lives,
};

// Not thread-safe. The device must outlive it.
class Onlooker {
 public:
  // Has a first look. Of a device that nobody else can have, that is all.
  explicit Onlooker(io::BlockDevice& device);

  // Watches until at least `time` has passed since the first look; ends at once when it is known. Blocks.
  Presence watch(std::chrono::milliseconds time = kGlance);

  // Of the lease, see lease::describe(); empty: nobody's.
  const std::string& holder() const { return holder_; }

 private:
  bool look();
  bool has_moved_on();

  io::BlockDevice& device_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Presence presence_ = Presence::nobody;
  std::string holder_;
  std::optional<format::Lease> lease_;
  std::optional<format::Answer> answer_;
  std::optional<format::Superblock> end_;  // the newest superblock, as if it stood at the end of the log
};

// What to warn of after a tool has read from the device; empty: nobody can have changed anything meanwhile.
std::string warning_of(const Onlooker& onlooker, Presence presence);

}  // namespace varve::control
