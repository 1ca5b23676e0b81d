#include "io/stacking.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "io/block_folder.h"

namespace varve::io {

namespace {

namespace files = std::filesystem;

constexpr unsigned kMostLayers = 16;  // deeper stacks are taken for incomplete
constexpr std::uint64_t kSector = 512;

std::string line_of(const files::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::uint64_t number_of(const files::path& file) {
  std::uint64_t number = 0;
  std::ifstream in(file);
  in >> number;
  return number;
}

std::optional<dev_t> device_number(const files::path& file) {
  unsigned major_number = 0, minor_number = 0;
  char colon = 0;
  std::ifstream in(file);
  if (!(in >> major_number >> colon >> minor_number)) return std::nullopt;
  return makedev(major_number, minor_number);
}

std::string node_of(dev_t device) {
  std::error_code error;
  const files::path folder = files::canonical(block_folder(device), error);
  return error ? fmt::format("device {}:{}", major(device), minor(device)) : "/dev/" + folder.filename().string();
}

std::uint64_t end_of(std::uint64_t begin, std::uint64_t length) { return length ? begin + length : ~std::uint64_t{0}; }

struct Below {
  std::vector<Layer> layers;
  bool complete = true;
};

// Without a file since a moment ago, or on a file of a FUSE filesystem whose daemon has ended: nothing is written through it.
bool leads_nowhere(int error) { return error == ENXIO || error == ENOTCONN; }

// By the kernel's own word; needs the right to open the device. Nothing when it does not say.
std::optional<Below> asked_backing(dev_t device) {
  const std::string node = node_of(device);
  const int fd = ::open(node.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat status {};
  struct loop_info64 info {};
  const bool is_it = ::fstat(fd, &status) == 0 && status.st_rdev == device;
  const int error = is_it && ::ioctl(fd, LOOP_GET_STATUS64, &info) != 0 ? errno : 0;
  ::close(fd);
  if (is_it && leads_nowhere(error)) return Below();
  if (!is_it || error) return std::nullopt;
  Layer layer;
  layer.device = info.lo_rdevice ? info.lo_rdevice : info.lo_device;
  layer.inode = info.lo_rdevice ? 0 : info.lo_inode;
  layer.begin = info.lo_offset;
  layer.end = end_of(info.lo_offset, info.lo_sizelimit);
  return Below{{layer}, true};
}

// By the path that the device was set up with, if that still leads to a file here.
std::optional<Layer> named_backing(const files::path& loop, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  Layer layer;
  layer.device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
  layer.inode = S_ISBLK(status.st_mode) ? 0 : status.st_ino;
  layer.begin = number_of(loop / "offset");
  layer.end = end_of(layer.begin, number_of(loop / "sizelimit"));
  return layer;
}

Below below_loop(dev_t device, const std::string& path) {
  Below below;
  if (auto asked = asked_backing(device)) below = *asked;
  else if (const auto named = named_backing(block_folder(device) / "loop", path)) below.layers.push_back(*named);
  else below.complete = false;
  for (Layer& layer : below.layers) layer.name = path;
  return below;
}

Below below_partition(dev_t device) {
  const files::path folder = block_folder(device);
  const auto disk = device_number(folder / "../dev");
  if (!disk) return {{}, false};
  Layer layer;
  layer.device = *disk;
  layer.begin = number_of(folder / "start") * kSector;
  layer.end = end_of(layer.begin, number_of(folder / "size") * kSector);
  layer.name = node_of(*disk);
  return {{layer}, true};
}

// Device mapper, RAID: which part of each slave is used is not looked at.
Below below_mapped(dev_t device) {
  Below below;
  std::error_code error;
  for (files::directory_iterator at(block_folder(device) / "slaves", error), end; !error && at != end; at.increment(error)) {
    const auto slave = device_number(at->path() / "dev");
    if (slave) below.layers.push_back({*slave, 0, 0, ~std::uint64_t{0}, node_of(*slave)});
    else below.complete = false;
  }
  return below;
}

Below below(const Layer& layer) {
  if (!layer.is_block_device()) return {};
  const files::path folder = block_folder(layer.device);
  std::error_code error;
  if (!files::exists(folder, error)) return {{}, false};
  if (const std::string path = line_of(folder / "loop/backing_file"); !path.empty()) return below_loop(layer.device, path);
  if (files::exists(folder / "partition", error)) return below_partition(layer.device);
  return below_mapped(layer.device);
}

// The part of the layer below that the part in use of the one above takes.
Layer narrowed(Layer lower, const Layer& upper) {
  const std::uint64_t start = lower.begin;
  lower.begin = start + upper.begin;
  if (upper.end != ~std::uint64_t{0}) lower.end = std::min(lower.end, start + upper.end);
  return lower;
}

}  // namespace

bool Stack::meets(const Stack& other) const {
  return std::ranges::any_of(layers, [&](const Layer& mine) {
    return std::ranges::any_of(other.layers, [&](const Layer& theirs) { return mine.meets(theirs); });
  });
}

Stack stack_of(const struct stat& status, const std::string& name) {
  Stack stack;
  const bool is_device = S_ISBLK(status.st_mode);
  stack.layers.push_back({is_device ? status.st_rdev : status.st_dev, is_device ? 0 : status.st_ino, 0, ~std::uint64_t{0}, name});
  for (std::size_t at = 0; at < stack.layers.size(); ++at) {
    if (at == kMostLayers) {
      stack.complete = false;
      break;
    }
    const Layer upper = stack.layers[at];
    const Below found = below(upper);
    stack.complete = stack.complete && found.complete;
    for (const Layer& lower : found.layers) stack.layers.push_back(narrowed(lower, upper));
  }
  return stack;
}

std::vector<Stack> loop_stacks() {
  std::vector<Stack> stacks;
  std::error_code error;
  for (files::directory_iterator at("/sys/block", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with("loop") || line_of(at->path() / "loop/backing_file").empty()) continue;
    const auto device = device_number(at->path() / "dev");
    if (!device) continue;
    struct stat status {};
    status.st_mode = S_IFBLK;
    status.st_rdev = *device;
    stacks.push_back(stack_of(status, "/dev/" + name));
  }
  return stacks;
}

}  // namespace varve::io
