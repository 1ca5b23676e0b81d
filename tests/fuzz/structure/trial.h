// What an image has to go through: it is checked, mounted, read, changed, unmounted and repaired.
//
// fsck and the engine know nothing of each other. So what fsck calls whole must mount, be read without an error, take writes, and be whole
// again afterwards; and so must what the repair has made. Anything else ends the process with a message.
#pragma once

#include <cstdint>

#include "io/mem_device.h"

namespace varve::fuzz {

// Bits of Recipe::plan, for what has damage. The two lowest are both clear where it is repaired, too.
inline constexpr std::uint8_t kNoRepair = 3;
inline constexpr std::uint8_t kReadOnly = 4;
inline constexpr std::uint8_t kSnapshots = 8;  // they are made, deleted, and everything is scrubbed: of any image

struct TrialCounts {
  std::uint64_t images = 0;
  std::uint64_t whole = 0;      // for fsck
  std::uint64_t mounted = 0;    // with damage
  std::uint64_t repairs = 0;    // tried
  std::uint64_t repaired = 0;   // and then used as if nothing had been
  std::uint64_t checks = 0;
  std::uint64_t mounts = 0;     // tried, with all that comes after them
};

void suffer(const io::MemDevice& device, std::uint8_t plan, TrialCounts& counts);

// Nothing but one part of it, to measure that.
enum class Stage : std::uint8_t { all, check, use, repair };
void suffer_stage(Stage stage, const io::MemDevice& device, std::uint8_t plan, TrialCounts& counts);

}  // namespace varve::fuzz
