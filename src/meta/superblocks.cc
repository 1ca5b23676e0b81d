#include "meta/superblocks.h"

#include <optional>

#include <fmt/format.h>

#include "base/buffer.h"
#include "io/foreign_content.h"
#include "io/patient_read.h"

namespace varve::meta {

namespace {

Result<format::Superblock> read_copy(io::BlockDevice& device, std::uint64_t block) {
  AlignedBuffer buffer(kBlockSize);
  TRY(io::read_patiently(device, block << kBlockShift, buffer.span()));
  return format::decode_superblock(buffer.span());
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
  Result<format::Superblock> first = read_copy(device, 0);
  // The second copy stands in the last block of the filesystem, which the first knows; without it, of the device.
  const std::uint64_t last = first.ok() ? first->device_blocks - 1 : device_blocks - 1;
  Result<format::Superblock> second =
      last < device_blocks ? read_copy(device, last) : Result<format::Superblock>(Errc::corrupt);

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

}  // namespace varve::meta
