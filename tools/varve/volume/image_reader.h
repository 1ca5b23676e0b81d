// A device or image, for looking into it.
#pragma once

#include <memory>
#include <string>

#include "base/buffer.h"
#include "format/superblock.h"
#include "io/block_device.h"
#include "tree/item_tree.h"
#include "tree/map_tree.h"
#include "varve/io_layer.h"

namespace varve::tool {

enum class Copy : std::uint8_t { first, second };

class ImageReader {
 public:
  // The better of both superblocks. Errc::in_use: mounted.
  static Result<ImageReader> open(const std::string& path);
  // One that may be mounted. What is read is the settled checkpoint of that moment; a node that has made room since is
  // Errc::corrupt, because every node says what it is.
  static Result<ImageReader> open_beside_mount(const std::string& path);

  const format::Superblock& super() const { return super_; }
  io::BlockDevice& device() { return *device_; }
  tree::NodeSource& nodes() { return *source_; }

  static Result<std::unique_ptr<io::BlockDevice>> open_device(const std::string& path);
  static Result<format::Superblock> read_superblock(io::BlockDevice& device, Copy copy);
  Result<AlignedBuffer> read_blocks(BlockAddr address, std::uint64_t count);

  tree::TreeRoot inode_file() const { return {super_.inode_file, super_.inode_file_level}; }
  tree::MapRoot reverse_map() const;
  tree::MapRoot free_map() const;

 private:
  ImageReader() = default;
  static Result<ImageReader> read(std::unique_ptr<io::BlockDevice> device);

  std::unique_ptr<io::BlockDevice> device_;
  format::Superblock super_;
  std::unique_ptr<tree::NodeCache> cache_;
  std::unique_ptr<tree::NodeSource> source_;
};

// --- a filesystem that a command looks at block by block, mounted or not ---

// A mount may use blocks of the checkpoint again while they are looked at: so often it is worth another try.
inline constexpr int kTriesBesideMount = 5;

struct ViewedPlace {
  std::string device;
  std::string directory;  // where it is mounted; empty: it is not

  bool is_mounted() const { return !directory.empty(); }
  Result<ImageReader> open() const { return is_mounted() ? ImageReader::open_beside_mount(device) : ImageReader::open(device); }
};

// `path`: where it is mounted, or a device or image. A mount makes a checkpoint, so that what was written is on the device.
Result<ViewedPlace> viewed_place(const std::string& path, IoLayer& io, bool json);

}  // namespace varve::tool
