// The superblock: the only structure that is overwritten in place. Two copies, equal at rest: beside each other in an area of their own
// (superblock_ring.h), or in block 0 and the last block.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "format/chunk.h"
#include "format/layout.h"
#include "format/node.h"

namespace varve::format {

// Features: an unknown compat bit is ignored, an unknown ro_compat bit forbids writing, an unknown incompat bit forbids
// mounting. Compressed and shared extents will be bits here.
struct Features {
  std::uint64_t compat = 0;
  std::uint64_t ro_compat = 0;
  std::uint64_t incompat = 0;

  bool operator==(const Features&) const = default;
};
inline constexpr std::uint64_t kCompatScrubMark = 1;         // the bytes of ScrubMark mean something
inline constexpr std::uint64_t kCompatProtectedFiles = 2;    // some file is or was immutable or append-only
inline constexpr std::uint64_t kCompatDeviceProfile = 4;     // what mkfs knew of the device
inline constexpr std::uint64_t kCompatWritingCosts = 8;      // the bytes of WritingCosts mean something
inline constexpr std::uint64_t kIncompatSuperblockArea = 1;  // superblocks stand in an area of their own
inline constexpr std::uint64_t kIncompatLongHeaders = 2;  // while mounted for writing: chunks may have more than kMaxChunkHeaderBlocks
inline constexpr std::uint64_t kIncompatGaps = 4;         // while mounted for writing: chunks may tell of another place for the next one
inline constexpr std::uint64_t kIncompatTails = 16;       // the fields of TailLimits mean something, and there may be tails
inline constexpr std::uint64_t kIncompatImage = 8;        // metadata alone (image_mark.h): nothing mounts it, so kKnownFeatures has it not
// The fields of SnapshotTables mean something: blocks live that the newest trees do not name. A version that does not know that would
// give them away by writing, but reads the newest trees as ever.
inline constexpr std::uint64_t kRoCompatSnapshots = 1;
inline constexpr Features kKnownFeatures{
    .compat = kCompatScrubMark | kCompatProtectedFiles | kCompatDeviceProfile | kCompatWritingCosts,
    .ro_compat = kRoCompatSnapshots,
    .incompat = kIncompatSuperblockArea | kIncompatLongHeaders | kIncompatGaps | kIncompatTails};
inline constexpr std::uint64_t kIncompatOfMounts = kIncompatLongHeaders | kIncompatGaps;  // there only while mounted for writing

// Where superblocks are written in turn, so that a device sees a stream: slots of some blocks, of which the first holds a superblock.
// Block 0 and the last block then hold anchors: superblocks that tell the place of the area and a name, and count for nothing else.
struct SuperblockArea {
  BlockAddr start;
  std::uint32_t slots = 0;  // at least kMinSlots; 0: no area
  std::uint32_t slot_blocks = 0;

  std::uint64_t index_of(std::uint64_t sequence) const { return (sequence - 1) % slots; }
  BlockAddr place_of(std::uint64_t sequence) const { return start + index_of(sequence) * slot_blocks; }
  std::uint64_t blocks() const { return std::uint64_t{slots} * slot_blocks; }
  explicit operator bool() const { return slots != 0; }
  bool operator==(const SuperblockArea&) const = default;
};
inline constexpr std::uint32_t kMinSlots = 4, kMaxSlots = 4096, kMaxSlotBlocks = 16;

// How something came to be known of the device.
enum class Source : std::uint8_t { unknown, assumed, told, given, measured };  // told: by the device; given: by the user

const char* name_of(Source source);

// What writes cost on the device, as it was known when the filesystem was made, or measured since. Only with kCompatDeviceProfile.
struct DeviceProfile {
  std::uint32_t erase_blocks = 0;  // what is erased, or rewritten, as a whole
  std::uint16_t streams = 0;       // how many places may be written in turn before each costs a unit's copy; 0: no such limit is known
  Source erase_source = Source::unknown;
  Source streams_source = Source::unknown;

  bool operator==(const DeviceProfile&) const = default;
};

struct HeadPlace {  // where an open head goes on after a clean unmount
  Run rest;         // unused rest of its segment, none when start is 0
  bool operator==(const HeadPlace&) const = default;
};

struct LifetimeCounters {  // since mkfs
  std::uint64_t user_blocks = 0;        // written by users
  std::uint64_t cleaned_blocks = 0;     // moved by cleaners
  std::uint64_t node_blocks = 0;        // tree nodes written
  std::uint64_t chain_blocks = 0;       // chunk header blocks written
  std::uint64_t device_bytes = 0;       // written to the device in all
  std::uint64_t checkpoints = 0;
  std::uint64_t mounts = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t segments_cleaned = 0;
  std::uint64_t errors = 0;

  bool operator==(const LifetimeCounters&) const = default;
};

struct ErrorEvent {
  Timestamp when;
  std::uint32_t code = 0;  // Errc
  BlockAddr address;
  Ino ino;

  bool operator==(const ErrorEvent&) const = default;
};

// How far the last scrub of a mount has come. Only known with kCompatScrubMark, else as if there had been none.
struct ScrubMark {
  std::int64_t started = 0;   // seconds since 1970; 0: there was none
  std::int64_t finished = 0;  // 0: it goes on at `next`
  TreeId tree = TreeId::inode_file;
  Key next;                  // maps: offset = index of the first record
  std::uint64_t blocks = 0;  // verified so far
  std::uint64_t errors = 0;  // found so far

  // When everything began to be read, if that came to its end and found nothing; else 0. Errors before that are over.
  std::int64_t verified() const { return finished > 0 && errors == 0 ? started : 0; }

  bool operator==(const ScrubMark&) const = default;
};

// What cleaning was last found to cost the device, in its ns for a block; 0: not known. Kept as eighths of the logarithm to base 2, so a
// value is good to some 5 %, up to 4 s. Only known with kCompatWritingCosts.
struct WritingCosts {
  std::uint32_t copied = 0, plugged = 0;  // a block that is moved, by copying and into holes, with its share of the checkpoint
  std::uint32_t beside = 0, threaded = 0;  // a block that users write: beside copying; where they write into holes
  std::uint32_t in_row = 0, scattered = 0;  // of a request of the cleaner's alone

  bool operator==(const WritingCosts&) const = default;
};
// As a mount after this one will know it.
WritingCosts as_kept(const WritingCosts& costs);

// What belongs to snapshots. Only with kRoCompatSnapshots, which is set from the first snapshot until the tree has gone.
struct SnapshotTables {
  NodeRef root;  // of .sfile; none: no such tree
  std::uint8_t level = 0;
  std::uint64_t snapshots = 0;     // items of them, those that are being deleted included
  std::uint64_t held_blocks = 0;   // live blocks that the newest trees do not name
  std::uint64_t held_data = 0;     // of them, blocks of files
  std::uint64_t shared_nodes = 0;  // of the newest .ifile's nodes those that snapshots hold, too; or more
  std::uint64_t places = 0;        // items of moved blocks

  bool operator==(const SnapshotTables&) const = default;
};

// How long tails become, in bytes. Only with kIncompatTails.
struct TailLimits {
  std::uint64_t kept = 0;    // in the inode file, at most kMaxTail; 0: no new ones
  std::uint64_t logged = 0;  // in the log until the next checkpoint, at most kMaxLoggedTail; 0: as `kept`

  bool operator==(const TailLimits&) const = default;
};

// 1168 bytes at fixed offsets (superblock_layout.h, docs/format.md), then zeros to the end of the block. Reserved bytes are
// written as zeros and ignored when read: only a feature bit gives them a meaning.
struct Superblock {
  // identity and geometry, fixed at mkfs
  std::uint32_t version = kFormatVersion;
  Features features;
  Uuid uuid{};
  std::string label;                // at most 63 bytes of UTF-8
  std::uint64_t identity = 0;       // random: in every node and chunk
  std::array<std::uint64_t, 2> hash_key{};
  Timestamp made;
  std::uint64_t device_blocks = 0;  // the second copy, or an anchor, stands in the last of them
  std::uint32_t segment_blocks = 0;
  std::uint64_t segments = 0;
  BlockAddr first_segment;          // segment i starts at first_segment + i * segment_blocks
  SuperblockArea area;              // only with kIncompatSuperblockArea
  DeviceProfile device;

  std::uint64_t sequence = 0;  // which of all superblocks that were written to the area; from 1; 0 in anchors, and without an area

  // the checkpoint
  Serial serial;
  std::uint64_t epoch = 0;  // of the chunks to replay
  Lsn lsn;                  // last chunk that is in the trees; replay starts with lsn + 1
  std::uint32_t chain_crc = 0;  // crc field of that chunk's header
  Run chain;                // rest of the chain's run: start = where chunk lsn + 1 stands if it fits
  Run next_run;             // where it stands otherwise
  std::uint64_t clock = 0;      // log clock, in blocks
  std::uint64_t clock_unit = 1; // blocks per unit of stored clocks: max(1, device_blocks / 2^18)
  std::uint64_t next_ino = 0;
  NodeRef inode_file;
  std::uint8_t inode_file_level = 0;
  NodeRef reverse_map;
  NodeRef free_map;
  NodeRef image;  // the same superblock as the last node of the checkpoint (both copies lost: found by a scan)
  std::array<HeadPlace, kMaxGroups> heads{};
  HeadPlace node_head;
  std::array<std::uint64_t, kMaxGroups> group_centres{};

  // counts at F
  std::uint64_t live_blocks = 0;      // set bits of `.ffile`
  std::uint64_t data_blocks = 0;      // of them, file blocks
  std::uint64_t reserved_blocks = 0;  // unwritten extents: charged, without blocks
  std::uint64_t inodes = 0;

  bool clean = false;  // unmounted: no chunk follows
  LifetimeCounters lifetime;
  ErrorEvent first_error, last_error;
  ScrubMark scrub;
  WritingCosts costs;
  SnapshotTables snapshots;
  TailLimits tails;

  bool operator==(const Superblock&) const = default;
};

// Returns how many whole segments lie before the last block of a filesystem of this size. With fewer than kFewestSegments there is
// nothing to clean into.
std::uint64_t segments_in(std::uint64_t device_blocks, BlockAddr first_segment, std::uint32_t segment_blocks);
inline constexpr std::uint64_t kFewestSegments = 16;

// Do they say the same, whichever was written first?
bool same_but_for_sequence(const Superblock& a, const Superblock& b);

std::string uuid_text(const Uuid& uuid);  // 8-4-4-4-12 hexadecimal digits
// 32 hexadecimal digits, with dashes anywhere or none; not all of them zeros.
std::optional<Uuid> parse_uuid(std::string_view text);
// Errc::invalid: more than 63 bytes, or not is_printable(), which labels from before may not be: show them by printable().
Status check_label(std::string_view label);

void encode_superblock(const Superblock& super, std::span<std::byte> block);

// Errc::not_varve: no magic; Errc::corrupt: magic but a bad CRC or impossible numbers; Errc::unknown_feature: a version
// above kFormatVersion. Feature bits are not judged here.
Result<Superblock> decode_superblock(std::span<const std::byte> block);

// Can a crash in the middle of its write have left this copy so, beside another that is good? Any of its sectors (512 bytes)
// are then of one version of this filesystem's superblock and the others of another one. What no write leaves is damage: other
// bytes in what mkfs has fixed or in what is always zero, or the CRC of `good` over another first sector.
bool may_be_torn(std::span<const std::byte> copy, std::span<const std::byte> good);

// How many blocks a superblock tells of that does not decode. Where it is torn, it stands in the first sector, and is that of one of the
// versions. A hint where the other copy may stand, which must then say it as well. 0: no hint.
std::uint64_t told_device_blocks(std::span<const std::byte> block);

// The image, last node of a checkpoint: a node header (tree super_image, count 0) and the first kNodePayloadBytes of the
// encoded superblock, in which `image` itself is null because it would hold its own CRC. Returns the block_crc.
std::uint32_t encode_super_image(const Superblock& super, std::span<std::byte> block, BlockAddr address);
Result<Superblock> decode_super_image(std::span<const std::byte> block);  // with `image` filled in

// What it must say while there may be such chunks, and when it is unmounted: then older versions read it.
enum class Chunks : std::uint8_t { none, in_rows, with_gaps };
void allow_chunks(Superblock& super, Chunks chunks);

enum class Intent : std::uint8_t { read, write };
Status check_features(const Superblock& super, Intent intent);

}  // namespace varve::format
