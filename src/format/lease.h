// The lease: which program writes to the device now. Block 1 names the holder; in block 2 a newcomer asks whether it still lives, in
// block 3 the holder answers.
//
// Each record fits in one sector of 512 bytes, so that no crash can tear it. Neither is part of the filesystem's state: a block
// without a valid record means that nobody holds, or asks for, the lease. src/lease has the protocol.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/types.h"

namespace varve::format {

inline constexpr std::uint64_t kLeaseBlock = 1;
inline constexpr std::uint64_t kChallengeBlock = 2;
inline constexpr std::uint64_t kAnswerBlock = 3;

// A process, so that others can tell whether it lives and can name it.
struct Process {
  std::array<std::uint8_t, 16> boot{};  // random number of the kernel's start; zeros: not known
  std::uint32_t pid = 0;
  std::uint64_t pid_namespace = 0;
  std::uint64_t started = 0;  // in clock ticks since the kernel's start
  std::string host;           // texts are cut to 64, 32 and 160 bytes
  std::string program;
  std::string place;          // what it is doing: "mounted at /mnt/data"

  bool operator==(const Process&) const = default;
};

// What a lock of one kernel protects: an image file, or a block device (inode 0).
struct LockedObject {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const LockedObject&) const = default;
};

struct Lease {
  std::uint64_t holder = 0;    // random, not 0: one use of the device by one program
  std::uint32_t promise_ms = 0;  // the holder writes nothing when it last saw this record longer ago
  Timestamp taken;
  Process process;
  LockedObject object;

  bool operator==(const Lease&) const = default;
};

struct Challenge {
  std::uint64_t nonce = 0;  // random, not 0
  Timestamp made;
  bool demands = false;  // the holder is to stop writing: a take-over
  Process process;

  bool operator==(const Challenge&) const = default;
};

// Has a place of its own because it may come late, when the lease is another's.
struct Answer {
  std::uint64_t nonce = 0;  // of the challenge, not 0
  std::uint64_t holder = 0;

  bool operator==(const Answer&) const = default;
};

// Write a whole block: one sector of record, then zeros.
void encode_lease(const Lease& lease, std::span<std::byte> block);
void encode_challenge(const Challenge& challenge, std::span<std::byte> block);
void encode_answer(const Answer& answer, std::span<std::byte> block);

// Nothing when the block holds no valid record.
std::optional<Lease> decode_lease(std::span<const std::byte> block);
std::optional<Challenge> decode_challenge(std::span<const std::byte> block);
std::optional<Answer> decode_answer(std::span<const std::byte> block);

}  // namespace varve::format
