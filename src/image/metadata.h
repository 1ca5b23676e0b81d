// An image of a filesystem's metadata, in which others can look for a mistake: all trees of the newest checkpoint and of its snapshots, the
// superblocks, and the headers of the log. No block of a file is in it. It is marked (format::kIncompatImage), and nothing mounts it.
#pragma once

#include <functional>

#include "base/result.h"
#include "format/superblock.h"
#include "image/report.h"
#include "io/block_device.h"

namespace varve::image {

struct Choice {
  // Other names in place of those that there are (name_cipher.h), and no values of extended attributes. The key of name hashes is not in
  // the image, so that its index of names fits no name.
  bool hashes_names = false;
  // Without: the image is as of the checkpoint, unmounted. Not together with hashes_names: the log has names, too. Not of a
  // filesystem with tails either: its log has content of files.
  bool has_log = false;
  // Asked before each node is written, with how many have been: an error ends the copy. None: nobody wants to know.
  std::function<Status(std::uint64_t)> advance{};
};

// `super`: the one to believe, of `source`. `target` has as many blocks as it says, and holds zeros. Reads `source` only. Errors are of
// writing; what cannot be read is in the report. Where others write to `source` meanwhile, nodes may seem damaged that are not.
Result<Report> copy_metadata(io::BlockDevice& source, const format::Superblock& super, io::BlockDevice& target, const Choice& choice);

}  // namespace varve::image
