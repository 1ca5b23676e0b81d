// What stands on what: a loop device on an image, a partition on its disk. Two names are one storage if their stacks meet.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

namespace varve::io {

// A range of bytes of a block device (inode 0) or of an image file.
struct Layer {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = ~std::uint64_t{0};
  std::string name;  // for messages: as far as it is known from here

  bool is_block_device() const { return inode == 0; }
  bool same_object(const Layer& other) const { return device == other.device && inode == other.inode; }
  bool meets(const Layer& other) const { return same_object(other) && begin < other.end && other.begin < end; }
};

struct Stack {
  std::vector<Layer> layers;  // from the top: what was opened, what it stands on, ...
  bool complete = true;       // false: something below could not be found out

  bool meets(const Stack& other) const;
};

// Of the block device or image file with this status. Loop devices are asked for the file that they have open (its device and
// inode), so that no renamed, removed or hidden path misleads.
Stack stack_of(const struct stat& status, const std::string& name);

// The loop devices of this machine that have something below, as "/dev/loop3".
std::vector<Stack> loop_stacks();

}  // namespace varve::io
