// Whether what a superblock says can be, beyond its checksum. For superblock.cc.
#pragma once

#include "format/superblock.h"

namespace varve::format {

Status check_geometry(const Superblock& s);
// `is_image`: the copy in the log, which does not say where it stands.
Status check_checkpoint(const Superblock& s, bool is_image);

}  // namespace varve::format
