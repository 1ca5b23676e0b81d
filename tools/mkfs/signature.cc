#include "mkfs/signature.h"

#include <filesystem>

#include "base/buffer.h"
#include "base/utf8.h"
#include "format/superblock.h"
#include "io/foreign_content.h"
#include "mkfs/probe.h"
#include "mkfs/report.h"

namespace varve::mkfs {

namespace {

// The superblock in `block`, if it is one; a damaged or newer one counts too.
std::optional<std::string> varve_in(std::span<const std::byte> block) {
  const auto super = format::decode_superblock(block);
  if (!super.ok()) return super.fails_with(Errc::not_varve) ? std::nullopt : std::optional(std::string("a damaged Varve filesystem"));
  const std::string label = super->label.empty() ? "" : fmt::format(" \"{}\"", printable(super->label));
  return fmt::format("the Varve filesystem{} with UUID {}", label, format::uuid_text(super->uuid));
}

// A device may have remains of anything. A file has what somebody put there, also if no library knows its kind: archives, backups.
std::optional<std::string> unknown_in_file(io::BlockDevice& device) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(device.name(), error)) return {};
  std::string any = io::find_any_content(device);
  return any.empty() ? std::nullopt : std::optional(std::move(any));
}

}  // namespace

Result<std::optional<std::string>> find_content(io::BlockDevice& device) {
  const std::uint64_t size = device.geometry().size_bytes;
  if (size < kBlockSize) return unknown_in_file(device);
  AlignedBuffer block(kBlockSize);
  for (const std::uint64_t at : {std::uint64_t{0}, size - kBlockSize}) {
    TRY(device.read(at, block.span()));
    if (auto varve = varve_in(block.span())) return varve;
  }
  // First by marks alone, so that what is damaged counts; what else there is, libblkid knows.
  std::string foreign = io::find_foreign_content(device);
  if (!foreign.empty()) return std::optional(std::move(foreign));
  auto probed = TRY(probe_content(device));
  return probed ? probed : unknown_in_file(device);
}

Status refuse_known_content(io::BlockDevice& device) {
  const auto content = TRY(find_content(device));
  if (!content) return {};
  return Error(Errc::exists, fmt::format("{} holds {}: use -f to overwrite it", device.name(), *content));
}

}  // namespace varve::mkfs
