// Every way an operation can fail, with the errno that a user of the mount sees.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

namespace varve {

// name, errno, sentence
#define VARVE_ERRORS(X)                                                          \
  X(would_block, EAGAIN, "must wait for something before it can go on")          \
  X(io, EIO, "input/output error")                                               \
  X(corrupt, EIO, "damaged data on the device")                                  \
  X(not_varve, EINVAL, "not a Varve filesystem")                                 \
  X(unsupported, EOPNOTSUPP, "not supported")                                    \
  X(unknown_feature, EINVAL, "made by a newer Varve with features unknown here") \
  X(needs_fsck, EUCLEAN, "damaged, run fsck.varve")                              \
  X(in_use, EBUSY, "in use")                                                     \
  X(not_found, ENOENT, "no such file or directory")                              \
  X(exists, EEXIST, "already exists")                                            \
  X(not_directory, ENOTDIR, "not a directory")                                   \
  X(is_directory, EISDIR, "is a directory")                                      \
  X(not_empty, ENOTEMPTY, "directory not empty")                                 \
  X(no_space, ENOSPC, "no space left")                                           \
  X(file_too_big, EFBIG, "file too big")                                         \
  X(name_too_long, ENAMETOOLONG, "name too long")                                \
  X(invalid, EINVAL, "invalid argument")                                         \
  X(read_only, EROFS, "read-only filesystem")                                    \
  X(not_permitted, EPERM, "operation not permitted")                             \
  X(access, EACCES, "permission denied")                                         \
  X(busy, EBUSY, "busy")                                                         \
  X(no_attribute, ENODATA, "no such attribute")                                  \
  X(out_of_range, ERANGE, "result too large")                                    \
  X(argument_too_big, E2BIG, "argument too big")                                 \
  X(too_many_links, EMLINK, "too many links")                                    \
  X(no_such_offset, ENXIO, "no data or hole at or after this offset")            \
  X(stale, ESTALE, "stale file handle")                                          \
  X(loop, EINVAL, "a directory cannot be moved into itself")                     \
  X(no_memory, ENOMEM, "out of memory")                                          \
  X(interrupted, EINTR, "interrupted")                                           \
  X(shut_down, EIO, "filesystem shut down")                                      \
  X(host_full, ENOSPC, "no space left where the image lies")

enum class Errc : std::uint8_t {
#define X(name, number, text) name,
  VARVE_ERRORS(X)
#undef X
};

const char* name_of(Errc code);
const char* text_of(Errc code);
int errno_of(Errc code);
Errc errc_from_errno(int number);

// What errno of this thread says, for messages.
std::string errno_text();

}  // namespace varve
