// The handlers of all operations (opcodes.h), by file. Each decodes its request and starts serving it.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/types.h"

namespace varve::fuse {

class Request;

// ops_names.cc: directory entries
Status lookup(Request& r);
Status forget(Request& r);
Status batch_forget(Request& r);
Status mknod(Request& r);
Status mkdir(Request& r);
Status symlink(Request& r);
Status tmpfile(Request& r);
Status link(Request& r);
Status unlink(Request& r);
Status rmdir(Request& r);
Status rename(Request& r);
Status rename2(Request& r);

// ops_listing.cc
Status readdir(Request& r);
Status readdirplus(Request& r);

// ops_inode.cc
Status open(Request& r);
Status getattr(Request& r);
Status statx(Request& r);
Status setattr(Request& r);
Status readlink(Request& r);
Status getxattr(Request& r);
Status setxattr(Request& r);
Status listxattr(Request& r);
Status removexattr(Request& r);

// ops_data.cc
Status read(Request& r);
Status write(Request& r);
Status fallocate(Request& r);
Status lseek(Request& r);
Status fsync(Request& r);
Status copy_file_range(Request& r);
Status copy_file_range_64(Request& r);

// ops_mount.cc: the mount as a whole
Status init(Request& r);
Status destroy(Request& r);
Status statfs(Request& r);
Status syncfs(Request& r);
Status nothing_to_do(Request& r);     // success
Status not_implemented(Request& r);   // ENOSYS
Status flush(Request& r);
Status notify_reply(Request& r);

// ops_ioctl.cc
Status ioctl(Request& r);
Status ioctl_kept(Request& r, std::optional<Ino> ino);  // in a snapshot, which the request shows; none: the folder of all

}  // namespace varve::fuse
