// Where the fields of a superblock stand; docs/format.md has the same table. For superblock*.cc.
#pragma once

#include <cstddef>

#include "format/node_block.h"
#include "format/superblock.h"

namespace varve::format::superblock_layout {

inline constexpr std::size_t kCrcAt = 8;
inline constexpr std::size_t kVersionAt = 12;
inline constexpr std::size_t kFeaturesAt = 16;
inline constexpr std::size_t kUuidAt = 40;
inline constexpr std::size_t kLabelAt = 56;
inline constexpr std::size_t kLabelBytes = 64;
inline constexpr std::size_t kIdentityAt = kLabelAt + kLabelBytes;
inline constexpr std::size_t kMadeAt = 144;
inline constexpr std::size_t kDeviceBlocksAt = 160;   // with the number of segments behind it: what changes with the size
inline constexpr std::size_t kFirstSegmentAt = 176;
inline constexpr std::size_t kFlagsAt = 188;
inline constexpr std::size_t kSerialAt = 192;
inline constexpr std::size_t kChainAt = 232;
inline constexpr std::size_t kClockAt = 264;
inline constexpr std::size_t kRefsAt = 288;
inline constexpr std::size_t kHeadsAt = 384;
inline constexpr std::size_t kNodeHeadAt = kHeadsAt + kMaxGroups * 16;
inline constexpr std::size_t kCentresAt = kNodeHeadAt + 16;
inline constexpr std::size_t kCountsAt = kCentresAt + kMaxGroups * 8;
inline constexpr std::size_t kLifetimeAt = kCountsAt + 4 * 8;
inline constexpr std::size_t kErrorsAt = kLifetimeAt + 10 * 8;
inline constexpr std::size_t kScrubAt = kErrorsAt + 2 * 32;
inline constexpr std::size_t kCostsAt = kScrubAt + 56;
inline constexpr std::size_t kAreaAt = kCostsAt + 8;  // as mkfs has fixed it: from here on all versions are the same
inline constexpr std::size_t kProfileAt = kAreaAt + 16;
inline constexpr std::size_t kStreamsAt = kProfileAt + 4;  // mkfs has fixed only what stands before
inline constexpr std::size_t kSnapshotsAt = kProfileAt + 16;  // these change again
inline constexpr std::size_t kSnapshotsEnd = kSnapshotsAt + 96;
inline constexpr std::size_t kTailsAt = kSnapshotsEnd;  // a mount changes them
inline constexpr std::size_t kEnd = kTailsAt + 16;
static_assert(kIdentityAt == 120 && kNodeHeadAt == 640 && kCentresAt == 656 && kCountsAt == 784);
static_assert(kLifetimeAt == 816 && kErrorsAt == 896 && kScrubAt == 960 && kAreaAt == 1024 && kTailsAt == 1152);
static_assert(sizeof(LifetimeCounters) == 10 * 8, "a new counter needs a place on disk");
static_assert(kEnd <= kNodePayloadBytes, "the image holds only the payload of a node");

}  // namespace varve::format::superblock_layout
