#include "store/superblocks.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/buffer.h"
#include "io/foreign_content.h"
#include "io/patient_read.h"

namespace varve::store {

namespace {

// `told`: how many blocks it tells of, also if it is torn.
Result<format::Superblock> read_copy(io::BlockDevice& device, std::uint64_t block, std::uint64_t& told) {
  AlignedBuffer buffer(kBlockSize);
  TRY(io::read_patiently(device, block << kBlockShift, buffer.span()));
  told = format::told_device_blocks(buffer.span());
  return format::decode_superblock(buffer.span());
}

// It stands in the last block of the filesystem, which the first copy tells, or else of the device.
Result<format::Superblock> read_second(io::BlockDevice& device, const Result<format::Superblock>& first, std::uint64_t told) {
  const std::uint64_t device_blocks = device.geometry().blocks();
  std::uint64_t unused = 0;
  if (first.ok() && told > device_blocks) return Errc::corrupt;
  if (first.ok()) return read_copy(device, told - 1, unused);
  if (told != 0 && told < device_blocks)
    if (auto second = read_copy(device, told - 1, unused); second.ok() && second->device_blocks == told) return second;
  return read_copy(device, device_blocks - 1, unused);
}

// Block 0 belongs to something else: what is left of an old filesystem behind it does not count.
Status refuse_foreign_content(io::BlockDevice& device, bool has_magic) {
  const std::string content = io::find_newcomer(device, has_magic);
  if (content.empty()) return {};
  return Error(Errc::not_varve, fmt::format("{0} holds {1}, not a Varve filesystem (if there was one before, fsck.varve --search "
                                            "{0} says what is left of it, and with -y takes it back, which destroys what is "
                                            "there now)", device.name(), content));
}

}  // namespace

Result<Superblocks> read_superblocks(io::BlockDevice& device) {
  const std::uint64_t device_blocks = device.geometry().blocks();
  if (device_blocks < format::kMinDeviceBlocks)
    return Error(Errc::not_varve, fmt::format("{} ({} bytes) is smaller than any Varve filesystem", device.name(),
                                              device.geometry().size_bytes));
  std::uint64_t told = 0;
  Result<format::Superblock> first = read_copy(device, 0, told);
  Result<format::Superblock> second = read_second(device, first, told);

  if (first.fails_with(Errc::io) && second.fails_with(Errc::io)) return first.error();
  for (const auto* copy : {&first, &second})
    if (!copy->ok() && copy->error().is(Errc::unknown_feature)) return copy->error();
  if (!first.ok() && !first.fails_with(Errc::io)) TRY(refuse_foreign_content(device, !first.fails_with(Errc::not_varve)));
  if (!first.ok() && !second.ok()) {
    if (first.error().is(Errc::not_varve) && second.error().is(Errc::not_varve))
      return Error(Errc::not_varve, fmt::format("{} is not a Varve filesystem (make one with mkfs.varve; if there was one, "
                                                "fsck.varve --search may find it)", device.name()));
    return Error(Errc::needs_fsck, fmt::format("{}: both superblocks are damaged; fsck.varve can look for a copy in the log",
                                            device.name()));
  }
  Superblocks result;
  const bool use_second = !first.ok() || (second.ok() && second->serial > first->serial);
  result.best = use_second ? *second : *first;
  result.equal = first.ok() && second.ok() && *first == *second;
  if (result.best.device_blocks > device_blocks)
    return Error(Errc::invalid,
                 fmt::format("{} is smaller ({} blocks) than the filesystem on it ({} blocks): is it cut off?",
                             device.name(), device_blocks, result.best.device_blocks));
  return result;
}

bool device_answers(io::BlockDevice& device, std::uint64_t device_blocks) {
  AlignedBuffer block(kBlockSize);
  return std::ranges::any_of(std::array{std::uint64_t{0}, device_blocks - 1},
                             [&](std::uint64_t at) { return device.read(at << kBlockShift, block.span()).ok(); });
}

Status write_superblocks(io::BlockDevice& device, const format::Superblock& super, const std::function<Status()>& flush) {
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  format::encode_superblock(super, block.span());
  for (const std::uint64_t at : {std::uint64_t{0}, super.device_blocks - 1}) {
    TRY(device.write(at << kBlockShift, block.span()));
    TRY(flush());
  }
  return {};
}

}  // namespace varve::store
