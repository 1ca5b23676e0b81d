// Which numbers mutations put into fields.
#include <array>

#include "fuzz/structure/draft.h"

namespace varve::fuzz {

namespace {

constexpr std::array<std::uint64_t, 32> kInteresting = {0,
                                                        1,
                                                        2,
                                                        3,
                                                        7,
                                                        15,
                                                        16,
                                                        63,
                                                        64,
                                                        127,
                                                        128,
                                                        255,
                                                        256,
                                                        257,
                                                        4095,
                                                        4096,
                                                        65535,
                                                        65536,
                                                        (1ULL << 31) - 1,
                                                        1ULL << 31,
                                                        (1ULL << 32) - 1,
                                                        1ULL << 32,
                                                        1ULL << 40,
                                                        (1ULL << 48) - 1,
                                                        (1ULL << 52) - 1,
                                                        1ULL << 56,
                                                        1ULL << 57,
                                                        (1ULL << 62) - 1,
                                                        1ULL << 62,
                                                        1ULL << 63,
                                                        (1ULL << 63) + 1,
                                                        ~0ULL};

std::uint64_t near(std::uint64_t number, std::uint64_t choice) { return number + choice % 5 - 2; }

}  // namespace

std::uint64_t Draft::number_for(const Mutation& m, const Field& field) const {
  const std::uint64_t now = field.number;
  switch (m.how % 8) {
    case 0: return m.value;
    case 1: return now + 1 + m.value % 4;
    case 2: return now - 1 - m.value % 4;
    case 3: return now ^ 1ULL << m.value % (8 * std::min<std::size_t>(field.size, 8));
    case 4: return kInteresting[m.value % kInteresting.size()];
    default: return own_number(field.meaning, m.value, now);
  }
}

// One that this image has somewhere, or nearly.
std::uint64_t Draft::own_number(Meaning meaning, std::uint64_t choice, std::uint64_t now) const {
  const format::Superblock& super = base_.super;
  switch (meaning) {
    case Meaning::address: return own_address(choice);
    case Meaning::ino: return choice % 8 == 0 ? near(super.next_ino, choice >> 3) : base_.inodes[choice % base_.inodes.size()].v;
    case Meaning::serial: return near(super.serial.v, choice);
    case Meaning::clock: return near(super.clock / super.clock_unit, choice);
    case Meaning::crc: return base_.blocks[choice % base_.blocks.size()].crc;
    case Meaning::flags: return now ^ choice % 16;
    case Meaning::plain: break;
  }
  const std::array<std::uint64_t, 8> counts = {super.device_blocks, super.segments, super.segment_blocks, super.live_blocks,
                                               super.data_blocks,   super.inodes,   now * 2,              now / 2};
  return near(counts[choice % counts.size()], choice >> 3);
}

std::uint64_t Draft::own_address(std::uint64_t choice) const {
  const std::uint64_t n = choice / 4;
  switch (choice % 4) {
    case 0: return base_.blocks[n % base_.blocks.size()].address.v;
    case 1: return base_.data.empty() ? n : base_.data[n % base_.data.size()].v;
    case 2: return n % (base_.super.device_blocks + 2);
    default: return base_.super.first_segment.v + n % (base_.super.segments + 1) * base_.super.segment_blocks;
  }
}

}  // namespace varve::fuzz
