#include "varve/volume/image_reader.h"

#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"
#include "checkpoint/superblocks.h"
#include "control/place.h"
#include "format/map_record.h"
#include "remote/network_name.h"
#include "remote/open_device.h"
#include "varve/volume/kernel_wait.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

constexpr std::size_t kCacheBytes = 64u << 20;

// The first copy is the one written last, the second one stands before it.
Result<format::Superblock> newest_of_area(io::BlockDevice& device, const format::Superblock& anchor, Copy copy) {
  const format::SuperblockRing ring = checkpoint::read_ring(device, anchor);
  if (!ring.newest()) return Error(Errc::corrupt, fmt::format("no superblock in the area at block {}", anchor.area.start));
  if (copy == Copy::first) return *ring.newest();
  return ring.before_newest();
}

// What to do where no superblock tells what is on the device. One at its end may still tell that it is Varve's.
Error unusable(io::BlockDevice& device, const Error& why) {
  if (const auto known = checkpoint::read_identity(device); known.ok()) {
    const std::string label = known->label.empty() ? "" : ", label " + printable(known->label);
    return Error(Errc::needs_fsck,
                 fmt::format("{0}: a Varve filesystem (UUID {1}{2}) of which no superblock says any more what it holds. fsck.varve -n {0} "
                             "looks for a copy and says what it would bring back, fsck.varve -y {0} does it",
                             device.name(), format::uuid_text(known->uuid), label));
  }
  if (!why.is(Errc::not_varve)) return why;
  return Error(Errc::not_varve, fmt::format("{} (if there was a filesystem, fsck.varve --search {} says what is left of it)", why.message(),
                                            device.name()));
}

}  // namespace

Result<std::unique_ptr<io::BlockDevice>> ImageReader::open_device(const std::string& path) {
  return remote::open_device(TRY(control::find_unmounted(path)), {.access = io::Access::read_only});
}

Result<format::Superblock> ImageReader::read_superblock(io::BlockDevice& device, Copy copy) {
  std::uint64_t blocks = device.geometry().blocks();
  if (blocks == 0) return Error(Errc::not_varve, fmt::format("{}: empty", device.name()));
  AlignedBuffer block(kBlockSize);
  if (copy == Copy::second && device.read(0, block.span()).ok())  // at the end of the filesystem, if the first copy, torn or not,
    if (const auto told = format::told_device_blocks(block.span())) blocks = std::min(blocks, told);  // tells it; else of the device
  TRY(device.read(copy == Copy::first ? 0 : (blocks - 1) << kBlockShift, block.span()));
  auto super = format::decode_superblock(block.span());
  if (super.ok() && super->area) super = newest_of_area(device, *super, copy);
  if (!super.ok()) return Error(super.error().code(), fmt::format("{}: {}", device.name(), super.error().message()));
  return super;
}

Result<ImageReader> ImageReader::open(const std::string& path) { return read(TRY(open_device(path))); }

Result<ImageReader> ImageReader::open_beside_mount(const std::string& path) {
  return read(TRY(remote::open_device(path, {.access = io::Access::read_only, .exclusive = false})));
}

Result<ImageReader> ImageReader::read(std::unique_ptr<io::BlockDevice> device) {
  ImageReader image;
  image.device_ = std::move(device);
  auto first = read_superblock(*image.device_, Copy::first);
  const auto second = read_superblock(*image.device_, Copy::second);
  if (!first.ok() && !second.ok()) return unusable(*image.device_, first.error());
  const bool take_second = !first.ok() || (second.ok() && second->serial > first->serial);
  image.super_ = take_second ? *second : *first;
  image.cache_ = std::make_unique<tree::NodeCache>(image.super_.identity, kCacheBytes);
  image.source_ = std::make_unique<tree::BlockingSource>(*image.cache_, *image.device_);
  return image;
}

Result<AlignedBuffer> ImageReader::read_blocks(BlockAddr address, std::uint64_t count) {
  if (address.v >= super_.device_blocks || count > super_.device_blocks - address.v)
    return Error(Errc::invalid, fmt::format("block {}: the device has {} blocks", address, super_.device_blocks));
  AlignedBuffer blocks(count << kBlockShift);
  TRY(device_->read(address.v << kBlockShift, blocks.span()));
  return blocks;
}

tree::MapRoot ImageReader::reverse_map() const {
  return {super_.reverse_map, format::TreeId::reverse_map, format::reverse_map_shape(super_.device_blocks)};
}

tree::MapRoot ImageReader::free_map() const {
  return {super_.free_map, format::TreeId::free_map, format::free_map_shape(super_.segments, super_.segment_blocks)};
}

// --- mounted or not --------------------------------------------------------------------------------------------------------------

namespace {

Result<ViewedPlace> place_of_mount(const std::string& device, const std::string& directory, IoLayer& io, bool json) {
  Volume client = TRY(Volume::of_mount(directory));
  const auto state = TRY(client.status());
  if (!remote::is_network_name(device) && ::access(device.c_str(), R_OK) != 0)
    return Error(Errc::not_permitted,
                 fmt::format("{}: cannot be read by you: this command looks at the device below {}", device, directory));
  if (state.value("read_only", false)) return ViewedPlace{device, directory};
  const KernelWait wait(io, {"making a checkpoint", kMountGoesOn, json});
  TRY(client.checkpoint());  // what has not been merged yet is in no tree
  return ViewedPlace{device, directory};
}

}  // namespace

Result<ViewedPlace> viewed_place(const std::string& path, IoLayer& io, bool json) {
  const control::Place found = TRY(control::find_place(path));
  if (found.is_dead) return control::daemon_gone(found);
  return found.is_mounted() ? place_of_mount(found.source, found.directory, io, json) : Result<ViewedPlace>(ViewedPlace{found.source, ""});
}

}  // namespace varve::tool
