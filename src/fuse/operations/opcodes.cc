#include "fuse/operations/opcodes.h"

#include <array>

#include "fuse/operations/kept_node.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/ops_kept.h"
#include "fuse/operations/request.h"
#include "fuse/operations/session.h"
#include "fuse/protocol/protocol.h"

namespace varve::fuse {

namespace {

struct Entry {
  const char* name = "unknown";
  Handler handler = not_implemented;
};

using Table = std::array<Entry, kOpcodes>;

constexpr Table make_table() {
  Table t{};
  t[FUSE_LOOKUP] = {"lookup", lookup};
  t[FUSE_FORGET] = {"forget", forget};
  t[FUSE_GETATTR] = {"getattr", getattr};
  t[FUSE_SETATTR] = {"setattr", setattr};
  t[FUSE_READLINK] = {"readlink", readlink};
  t[FUSE_SYMLINK] = {"symlink", symlink};
  t[FUSE_MKNOD] = {"mknod", mknod};
  t[FUSE_MKDIR] = {"mkdir", mkdir};
  t[FUSE_UNLINK] = {"unlink", unlink};
  t[FUSE_RMDIR] = {"rmdir", rmdir};
  t[FUSE_RENAME] = {"rename", rename};
  t[FUSE_LINK] = {"link", link};
  // ENOSYS to these, usually to OPEN and FLUSH as well, makes the kernel do them by itself from then on.
  t[FUSE_OPEN] = {"open", open};
  t[FUSE_OPENDIR] = {"opendir", not_implemented};
  t[FUSE_FLUSH] = {"flush", flush};
  t[FUSE_ACCESS] = {"access", not_implemented};
  t[FUSE_INTERRUPT] = {"interrupt", not_implemented};
  t[FUSE_RELEASE] = {"release", nothing_to_do};
  t[FUSE_RELEASEDIR] = {"releasedir", nothing_to_do};
  t[FUSE_READ] = {"read", read};
  t[FUSE_WRITE] = {"write", write};
  t[FUSE_STATFS] = {"statfs", statfs};
  t[FUSE_FSYNC] = {"fsync", fsync};
  t[FUSE_FSYNCDIR] = {"fsyncdir", fsync};
  t[FUSE_SETXATTR] = {"setxattr", setxattr};
  t[FUSE_GETXATTR] = {"getxattr", getxattr};
  t[FUSE_LISTXATTR] = {"listxattr", listxattr};
  t[FUSE_REMOVEXATTR] = {"removexattr", removexattr};
  t[FUSE_INIT] = {"init", init};
  t[FUSE_READDIR] = {"readdir", readdir};
  t[FUSE_READDIRPLUS] = {"readdirplus", readdirplus};
  // Without it the kernel uses MKNOD and asks for OPEN as well, usually once: then it knows that it needs no RELEASE either.
  t[FUSE_CREATE] = {"create", not_implemented};
  t[FUSE_TMPFILE] = {"tmpfile", tmpfile};
  t[FUSE_DESTROY] = {"destroy", destroy};
  t[FUSE_IOCTL] = {"ioctl", ioctl};
  t[FUSE_BATCH_FORGET] = {"batch_forget", batch_forget};
  t[FUSE_FALLOCATE] = {"fallocate", fallocate};
  t[FUSE_RENAME2] = {"rename2", rename2};
  t[FUSE_LSEEK] = {"lseek", lseek};
  t[FUSE_SYNCFS] = {"syncfs", syncfs};
  t[kOpStatx] = {"statx", statx};
  t[FUSE_GETLK] = {"getlk", not_implemented};
  t[FUSE_SETLK] = {"setlk", not_implemented};
  t[FUSE_SETLKW] = {"setlkw", not_implemented};
  t[FUSE_BMAP] = {"bmap", not_implemented};
  t[FUSE_POLL] = {"poll", not_implemented};
  t[FUSE_NOTIFY_REPLY] = {"notify_reply", notify_reply};
  t[FUSE_COPY_FILE_RANGE] = {"copy_file_range", copy_file_range};
  t[kOpCopyFileRange64] = {"copy_file_range_64", copy_file_range_64};
  return t;
}

constexpr Table kTable = make_table();
constexpr Entry kUnknown{};

bool is_of_xattrs(std::uint32_t opcode) {
  return opcode == FUSE_GETXATTR || opcode == FUSE_LISTXATTR || opcode == FUSE_SETXATTR || opcode == FUSE_REMOVEXATTR;
}

const Entry& entry(std::uint32_t opcode) { return opcode < kOpcodes ? kTable[opcode] : kUnknown; }

}  // namespace

const char* opcode_name(std::uint32_t opcode) { return entry(opcode).name; }
Handler opcode_handler(std::uint32_t opcode) { return entry(opcode).handler; }

Handler handler_of(Request& request) {
  const std::uint32_t opcode = request.header().opcode;
  if (is_of_xattrs(opcode) && !request.session().settings().wishes.xattrs) return not_implemented;  // the kernel asks once
  return is_kept(request.node()) ? kept_handler(opcode) : opcode_handler(opcode);
}

}  // namespace varve::fuse
