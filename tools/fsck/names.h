// Which names inodes have of which only the numbers are known.
#pragma once

#include <map>
#include <set>
#include <string>

#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::fsck {

// Paths from the root, without a slash before; of an inode with many names one of them. One read of all directory entries, and one of the
// entries of each directory above. As far as the trees can be read: an inode that is not in the result may have a name all the same.
std::map<Ino, std::string> find_names(io::BlockDevice& device, const format::Superblock& super, const std::set<Ino>& inodes);

}  // namespace varve::fsck
