#include "format/superblock.h"

#include <algorithm>
#include <bit>

#include "base/invariant.h"
#include "format/codec.h"
#include "format/image_mark.h"
#include "format/node_block.h"
#include "format/superblock_check.h"
#include "format/superblock_layout.h"
#include "format/superblock_parts.h"

namespace varve::format {

using namespace superblock_layout;

namespace {

constexpr std::size_t kDeviceSector = 512;  // what a device writes as a whole

Result<Superblock> decode(std::span<const std::byte> block, bool is_image) {
  if (block.size() < kBlockSize) return Error(Errc::not_varve, "superblock: less than a block");
  block = block.first(kBlockSize);
  Reader in(block);
  if (in.u64() != kSuperMagic) return Error(Errc::not_varve, "no Varve superblock here");
  const std::uint32_t crc = in.u32();
  if (crc_without_field(block, kCrcAt) != crc) return corrupt("superblock: CRC does not match its bytes");
  Superblock super;
  super.version = in.u32();
  if (super.version == 0) return corrupt("superblock: version 0");
  if (super.version > kFormatVersion)
    return Error(Errc::unknown_feature, fmt::format("format version {} is newer than this program's {}: use a newer Varve",
                                                    super.version, kFormatVersion));
  get_geometry(in, super);
  get_checkpoint(in, super);
  get_counts(in, super);
  get_area(in, super);
  get_profile(in, super);
  get_tables(in, super);
  get_tails(in, super);
  INVARIANT(in.ok() && in.position() == kEnd);
  TRY(check_geometry(super));
  TRY(check_checkpoint(super, is_image));
  return super;
}

std::string list_bits(std::uint64_t bits) {
  std::string list;
  for (; bits; bits &= bits - 1) list += fmt::format("{}{}", list.empty() ? "" : ", ", std::countr_zero(bits));
  return list;
}

}  // namespace

void encode_superblock(const Superblock& super, std::span<std::byte> block) {
  block = block.first(kBlockSize);
  Writer out(block);
  out.put(kSuperMagic);
  out.put(std::uint32_t{0});
  out.put(super.version);
  INVARIANT(out.size() == kFeaturesAt);
  put_geometry(out, super);
  INVARIANT(out.size() == kSerialAt);
  put_checkpoint(out, super);
  INVARIANT(out.size() == kCountsAt);
  put_counts(out, super);
  put_area(out, super.area);
  put_profile(out, super.device);
  if (super.features.ro_compat & kRoCompatSnapshots) put_tables(out, super.snapshots);
  out.skip_to(kTailsAt);
  if (super.features.incompat & kIncompatTails) put_tails(out, super.tails);
  out.skip_to(kEnd);
  INVARIANT(out.size() == kEnd);
  out.skip_to(kBlockSize);
  store32(block, kCrcAt, crc32c(block));
}

Result<Superblock> decode_superblock(std::span<const std::byte> block) { return decode(block, false); }

bool may_be_torn(std::span<const std::byte> copy, std::span<const std::byte> good) {
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::ranges::equal(copy.subspan(from, to - from), good.subspan(from, to - from));
  };
  const std::uint32_t crc = Reader(copy.subspan(kCrcAt)).u32();
  if (crc == crc_without_field(copy, kCrcAt)) return false;  // it is as somebody wrote it
  if (!same(0, kCrcAt) || !same(kVersionAt, kFeaturesAt) || !same(kIdentityAt, kDeviceBlocksAt) ||
      !same(kFirstSegmentAt, kFlagsAt) || !same(kAreaAt, kStreamsAt) || !same(kEnd, kBlockSize))
    return false;
  return same(0, kDeviceSector) || !same(kCrcAt, kVersionAt);
}

std::uint64_t told_device_blocks(std::span<const std::byte> block) {
  if (Reader(block).u64() != kSuperMagic) return 0;
  const std::uint64_t blocks = Reader(block.subspan(kDeviceBlocksAt)).u64();
  return blocks >= kMinDeviceBlocks && blocks <= kMaxAddress ? blocks : 0;
}

std::uint32_t encode_super_image(const Superblock& super, std::span<std::byte> block, BlockAddr address) {
  Superblock copy = super;
  copy.image = {};
  std::array<std::byte, kBlockSize> bytes;
  encode_superblock(copy, bytes);
  const NodeHeader header{.identity = super.identity, .serial = super.serial, .address = address,
                          .tree = TreeId::super_image, .level = 0, .count = 0, .used = kNodePayloadBytes,
                          .first = {Ino{0}, ItemKind{}, 0}};
  return write_node(block, header, std::span(bytes).first(kNodePayloadBytes));
}

Result<Superblock> decode_super_image(std::span<const std::byte> block) {
  const NodeHeader header = TRY(decode_node_header(block));
  if (header.tree != TreeId::super_image || header.used != kNodePayloadBytes)
    return corrupt("node at block {}: not a superblock image", header.address);
  std::array<std::byte, kBlockSize> bytes{};
  std::memcpy(bytes.data(), block.data() + kNodeHeaderBytes, kNodePayloadBytes);
  Superblock super = TRY(decode(bytes, true));
  if (super.identity != header.identity || super.serial != header.serial)
    return corrupt("superblock image at block {}: disagrees with its node header", header.address);
  super.image = {header.address, block_crc(block), 0};
  return super;
}

void allow_chunks(Superblock& super, Chunks chunks) {
  super.features.incompat &= ~kIncompatOfMounts;
  if (chunks == Chunks::none) return;
  if (most_header_blocks(super.segment_blocks) > kMaxChunkHeaderBlocks) super.features.incompat |= kIncompatLongHeaders;
  if (chunks == Chunks::with_gaps) super.features.incompat |= kIncompatGaps;
}

Status check_features(const Superblock& super, Intent intent) {
  const std::uint64_t incompat = super.features.incompat & ~(kKnownFeatures.incompat | kIncompatImage);
  if (incompat)
    return Error(Errc::unknown_feature, fmt::format("the filesystem uses unknown incompatible feature bits {}: it cannot "
                                                    "be read by this version, use a newer Varve", list_bits(incompat)));
  const std::uint64_t ro_compat = super.features.ro_compat & ~kKnownFeatures.ro_compat;
  if (ro_compat && intent == Intent::write)
    return Error(Errc::unknown_feature, fmt::format("the filesystem uses unknown feature bits {} that forbid writing: mount "
                                                    "it read-only or use a newer Varve", list_bits(ro_compat)));
  return {};
}

std::uint64_t segments_in(std::uint64_t device_blocks, BlockAddr first_segment, std::uint32_t segment_blocks) {
  return device_blocks <= first_segment.v + 1 ? 0 : (device_blocks - 1 - first_segment.v) / segment_blocks;
}

bool same_but_for_sequence(const Superblock& a, const Superblock& b) {
  Superblock copy = a;
  copy.sequence = b.sequence;
  return copy == b;
}

}  // namespace varve::format
