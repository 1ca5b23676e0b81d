// Attributes in the forms that replies want.
#pragma once

#include <string>
#include <vector>

#include "fs/filesystem.h"
#include "fuse/protocol/protocol.h"

namespace varve::fuse {

fuse_attr to_fuse_attr(const fs::Attr& attr);
fuse_attr_out to_attr_out(const fs::Attr& attr, std::uint64_t valid_seconds);
fuse_entry_out to_entry(const fs::Attr& attr);
fuse_entry_out to_entry(fs::Attr attr, Ino number);  // as which the kernel is to know it
fuse_entry_out no_entry();  // "there is no such name", to be remembered by the kernel
wire::StatxOut to_statx(const fs::Attr& attr, std::uint64_t valid_seconds);

// LISTXATTR's list; without the names that only administrators may see, if so.
std::string to_name_list(const std::vector<std::string>& names, bool may_see_all);

// SETATTR's body. `now` stands in for the flags that ask for the current time.
fs::AttrChange to_change(const fuse_setattr_in& in, Timestamp now);

}  // namespace varve::fuse
