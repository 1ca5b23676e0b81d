// A FUSE server that has everything in memory and answers at once: what the kernel and its messages cost, whatever stands behind them.
// compiled by `peers`:  memory_server DIRECTORY
//
// It asks the kernel for what Varve asks for: writeback cache, READDIRPLUS, default_permissions, attributes and names that stay valid.
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr double kForEver = 86400;
constexpr std::size_t kPiece = 128 << 10;

struct Node {
  struct stat attributes {};
  fuse_ino_t parent = 0;
  std::string target;                                // of a symbolic link
  std::map<std::string, fuse_ino_t> names;           // of a directory
  std::vector<std::unique_ptr<char[]>> pieces;       // of a file, kPiece bytes each; null: a hole
  std::unordered_map<std::string, std::string> xattrs;
};

std::mutex mutex;
std::unordered_map<fuse_ino_t, Node> nodes;
fuse_ino_t last = FUSE_ROOT_ID;

using Lock = std::lock_guard<std::mutex>;

timespec now() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

Node& add_node(mode_t mode, const fuse_ctx* context, fuse_ino_t parent) {
  const fuse_ino_t ino = nodes.empty() ? last : ++last;
  Node& node = nodes[ino];
  node.parent = parent;
  struct stat& a = node.attributes;
  a.st_ino = ino;
  a.st_mode = mode;
  a.st_nlink = S_ISDIR(mode) ? 2 : 1;
  a.st_uid = context ? context->uid : 0;
  a.st_gid = context ? context->gid : 0;
  a.st_blksize = 4096;
  a.st_atim = a.st_mtim = a.st_ctim = now();
  return node;
}

fuse_entry_param entry_of(const Node& node) {
  fuse_entry_param entry{};
  entry.ino = node.attributes.st_ino;
  entry.generation = 1;
  entry.attr = node.attributes;
  entry.attr_timeout = entry.entry_timeout = kForEver;
  return entry;
}

void touch(Node& directory) { directory.attributes.st_mtim = directory.attributes.st_ctim = now(); }

// Null, and the error is answered.
Node* made(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  Node& directory = nodes.at(parent);
  if (directory.names.contains(name)) {
    fuse_reply_err(request, EEXIST);
    return nullptr;
  }
  Node& node = add_node(mode, fuse_req_ctx(request), parent);
  nodes.at(parent).names[name] = node.attributes.st_ino;
  if (S_ISDIR(mode)) ++nodes.at(parent).attributes.st_nlink;
  touch(nodes.at(parent));
  return &node;
}

void drop_name(Node& directory, const std::string& name) {
  const auto found = directory.names.find(name);
  Node& node = nodes.at(found->second);
  if (S_ISDIR(node.attributes.st_mode)) --directory.attributes.st_nlink, node.attributes.st_nlink = 0;
  else --node.attributes.st_nlink;
  node.attributes.st_ctim = now();
  if (node.attributes.st_nlink == 0) node.pieces.clear();
  directory.names.erase(found);
  touch(directory);
}

void resize(Node& node, off_t size) {
  const auto pieces = static_cast<std::size_t>((size + static_cast<off_t>(kPiece) - 1) / static_cast<off_t>(kPiece));
  node.pieces.resize(pieces);
  if (size < node.attributes.st_size && size % static_cast<off_t>(kPiece) && node.pieces.back()) {
    const auto from = static_cast<std::size_t>(size) % kPiece;
    std::memset(node.pieces.back().get() + from, 0, kPiece - from);
  }
  node.attributes.st_size = size;
  node.attributes.st_blocks = (size + 4095) / 4096 * 8;
}

void on_init(void*, fuse_conn_info* connection) {
  connection->want |= connection->capable & (FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_READDIRPLUS | FUSE_CAP_PARALLEL_DIROPS |
                                             FUSE_CAP_ASYNC_DIO | FUSE_CAP_EXPORT_SUPPORT);
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS_AUTO);
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Lock lock(mutex);
  const Node& directory = nodes.at(parent);
  const auto found = directory.names.find(name);
  fuse_entry_param entry{};
  entry.entry_timeout = kForEver;
  if (found != directory.names.end()) entry = entry_of(nodes.at(found->second));
  fuse_reply_entry(request, &entry);
}

void on_getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  const Lock lock(mutex);
  fuse_reply_attr(request, &nodes.at(ino).attributes, kForEver);
}

void on_setattr(fuse_req_t request, fuse_ino_t ino, struct stat* to, int which, fuse_file_info*) {
  const Lock lock(mutex);
  Node& node = nodes.at(ino);
  struct stat& a = node.attributes;
  if (which & FUSE_SET_ATTR_MODE) a.st_mode = (a.st_mode & S_IFMT) | (to->st_mode & ~static_cast<mode_t>(S_IFMT));
  if (which & FUSE_SET_ATTR_UID) a.st_uid = to->st_uid;
  if (which & FUSE_SET_ATTR_GID) a.st_gid = to->st_gid;
  if (which & FUSE_SET_ATTR_SIZE) resize(node, to->st_size);
  if (which & FUSE_SET_ATTR_ATIME) a.st_atim = to->st_atim;
  if (which & FUSE_SET_ATTR_MTIME) a.st_mtim = to->st_mtim;
  if (which & FUSE_SET_ATTR_ATIME_NOW) a.st_atim = now();
  if (which & FUSE_SET_ATTR_MTIME_NOW) a.st_mtim = now();
  a.st_ctim = which & FUSE_SET_ATTR_CTIME ? to->st_ctim : now();
  fuse_reply_attr(request, &a, kForEver);
}

void on_readlink(fuse_req_t request, fuse_ino_t ino) {
  const Lock lock(mutex);
  fuse_reply_readlink(request, nodes.at(ino).target.c_str());
}

void reply_made(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  const Lock lock(mutex);
  const Node* const node = made(request, parent, name, mode);
  if (!node) return;
  const fuse_entry_param entry = entry_of(*node);
  fuse_reply_entry(request, &entry);
}

void on_mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t) { reply_made(request, parent, name, mode); }
void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  reply_made(request, parent, name, mode | S_IFDIR);
}

void on_symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  const Lock lock(mutex);
  Node* const node = made(request, parent, name, S_IFLNK | 0777);
  if (!node) return;
  node->target = target;
  node->attributes.st_size = static_cast<off_t>(std::strlen(target));
  const fuse_entry_param entry = entry_of(*node);
  fuse_reply_entry(request, &entry);
}

void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Lock lock(mutex);
  Node& directory = nodes.at(parent);
  if (!directory.names.contains(name)) return void(fuse_reply_err(request, ENOENT));
  drop_name(directory, name);
  fuse_reply_err(request, 0);
}

void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const Lock lock(mutex);
  Node& directory = nodes.at(parent);
  const auto found = directory.names.find(name);
  if (found == directory.names.end()) return void(fuse_reply_err(request, ENOENT));
  if (!nodes.at(found->second).names.empty()) return void(fuse_reply_err(request, ENOTEMPTY));
  drop_name(directory, name);
  fuse_reply_err(request, 0);
}

void on_rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t to, const char* new_name, unsigned flags) {
  const Lock lock(mutex);
  Node &from = nodes.at(parent), &into = nodes.at(to);
  if (flags) return void(fuse_reply_err(request, EINVAL));
  if (!from.names.contains(name)) return void(fuse_reply_err(request, ENOENT));
  const fuse_ino_t ino = from.names.at(name);
  if (into.names.contains(new_name)) {
    if (!nodes.at(into.names.at(new_name)).names.empty()) return void(fuse_reply_err(request, ENOTEMPTY));
    drop_name(into, new_name);
  }
  from.names.erase(name);
  into.names[new_name] = ino;
  Node& node = nodes.at(ino);
  if (S_ISDIR(node.attributes.st_mode)) --from.attributes.st_nlink, ++into.attributes.st_nlink;
  node.parent = to;
  node.attributes.st_ctim = now();
  touch(from);
  touch(into);
  fuse_reply_err(request, 0);
}

void on_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  const Lock lock(mutex);
  Node &node = nodes.at(ino), &directory = nodes.at(parent);
  if (!directory.names.emplace(name, ino).second) return void(fuse_reply_err(request, EEXIST));
  ++node.attributes.st_nlink;
  node.attributes.st_ctim = now();
  touch(directory);
  const fuse_entry_param entry = entry_of(node);
  fuse_reply_entry(request, &entry);
}

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* file) {
  const Lock lock(mutex);
  const Node* const node = made(request, parent, name, mode);
  if (!node) return;
  file->keep_cache = 1;
  const fuse_entry_param entry = entry_of(*node);
  fuse_reply_create(request, &entry, file);
}

void on_open(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void on_opendir(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->keep_cache = file->cache_readdir = 1;
  fuse_reply_open(request, file);
}

void on_read(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info*) {
  static const std::vector<char> zeros(kPiece);
  const Lock lock(mutex);
  const Node& node = nodes.at(ino);
  const off_t end = std::min(node.attributes.st_size, offset + static_cast<off_t>(size));
  std::vector<iovec> parts;
  for (off_t at = offset; at < end;) {
    const auto from = static_cast<std::size_t>(at) % kPiece;
    const std::size_t bytes = std::min(kPiece - from, static_cast<std::size_t>(end - at));
    const char* const piece = node.pieces[static_cast<std::size_t>(at) / kPiece].get();
    parts.push_back({const_cast<char*>(piece ? piece + from : zeros.data()), bytes});
    at += static_cast<off_t>(bytes);
  }
  fuse_reply_iov(request, parts.data(), static_cast<int>(parts.size()));
}

void on_write(fuse_req_t request, fuse_ino_t ino, const char* data, std::size_t size, off_t offset, fuse_file_info*) {
  const Lock lock(mutex);
  Node& node = nodes.at(ino);
  const off_t end = offset + static_cast<off_t>(size);
  if (end > node.attributes.st_size) resize(node, end);
  for (off_t at = offset; at < end;) {
    const auto from = static_cast<std::size_t>(at) % kPiece;
    const std::size_t bytes = std::min(kPiece - from, static_cast<std::size_t>(end - at));
    auto& piece = node.pieces[static_cast<std::size_t>(at) / kPiece];
    if (!piece) piece = std::make_unique<char[]>(kPiece);
    std::memcpy(piece.get() + from, data + (at - offset), bytes);
    at += static_cast<off_t>(bytes);
  }
  node.attributes.st_mtim = node.attributes.st_ctim = now();
  fuse_reply_write(request, size);
}

void list(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset, bool with_attributes) {
  const Lock lock(mutex);
  std::vector<char> out(size);
  std::size_t used = 0;
  off_t place = 0;
  const auto add = [&](const char* name, const fuse_entry_param& entry) {
    if (++place <= offset) return true;
    const std::size_t room = size - used;
    const std::size_t taken = with_attributes ? fuse_add_direntry_plus(request, out.data() + used, room, name, &entry, place)
                                              : fuse_add_direntry(request, out.data() + used, room, name, &entry.attr, place);
    if (taken > room) return false;
    used += taken;
    return true;
  };
  const auto itself = [](const Node& node) {
    fuse_entry_param entry{};
    entry.attr = node.attributes;  // without a number of an inode it is not kept
    return entry;
  };
  const Node& directory = nodes.at(ino);
  bool fits = add(".", itself(directory)) && add("..", itself(directory));
  for (auto name = directory.names.begin(); fits && name != directory.names.end(); ++name)
    fits = add(name->first.c_str(), entry_of(nodes.at(name->second)));
  fuse_reply_buf(request, out.data(), used);
}

void on_readdir(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info*) {
  list(request, ino, size, offset, false);
}
void on_readdirplus(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info*) {
  list(request, ino, size, offset, true);
}

void on_end(fuse_req_t request, fuse_ino_t, fuse_file_info*) { fuse_reply_err(request, 0); }
void on_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) { fuse_reply_err(request, 0); }
void on_fallocate(fuse_req_t request, fuse_ino_t ino, int mode, off_t offset, off_t length, fuse_file_info*) {
  const Lock lock(mutex);
  if (mode) return void(fuse_reply_err(request, EOPNOTSUPP));
  Node& node = nodes.at(ino);
  if (offset + length > node.attributes.st_size) resize(node, offset + length);
  fuse_reply_err(request, 0);
}
void on_getxattr(fuse_req_t request, fuse_ino_t, const char*, std::size_t) { fuse_reply_err(request, ENODATA); }
void on_listxattr(fuse_req_t request, fuse_ino_t, std::size_t size) {
  if (size) fuse_reply_buf(request, nullptr, 0);
  else fuse_reply_xattr(request, 0);
}
void on_statfs(fuse_req_t request, fuse_ino_t) {
  struct statvfs about {};
  about.f_bsize = about.f_frsize = 4096;
  about.f_blocks = about.f_bfree = about.f_bavail = 16u << 20;
  about.f_files = about.f_ffree = 1u << 30;
  about.f_namemax = 255;
  fuse_reply_statfs(request, &about);
}
// What has no name is kept: numbers are never used again, and a run is short.
void on_forget(fuse_req_t request, fuse_ino_t, std::uint64_t) { fuse_reply_none(request); }

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "memory_server DIRECTORY\n");
    return 2;
  }
  fuse_lowlevel_ops all{};
  all.init = on_init;
  all.lookup = on_lookup;
  all.forget = on_forget;
  all.getattr = on_getattr;
  all.setattr = on_setattr;
  all.readlink = on_readlink;
  all.mknod = on_mknod;
  all.mkdir = on_mkdir;
  all.symlink = on_symlink;
  all.unlink = on_unlink;
  all.rmdir = on_rmdir;
  all.rename = on_rename;
  all.link = on_link;
  all.create = on_create;
  all.open = on_open;
  all.opendir = on_opendir;
  all.read = on_read;
  all.write = on_write;
  all.readdir = on_readdir;
  all.readdirplus = on_readdirplus;
  all.release = all.releasedir = all.flush = on_end;
  all.fsync = all.fsyncdir = on_fsync;
  all.fallocate = on_fallocate;
  all.getxattr = on_getxattr;
  all.listxattr = on_listxattr;
  all.statfs = on_statfs;

  add_node(S_IFDIR | 0755, nullptr, FUSE_ROOT_ID);
  const char* options[] = {words[0], "-o", "default_permissions,fsname=memory_server"};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(options));
  fuse_session* const session = fuse_session_new(&arguments, &all, sizeof(all), nullptr);
  if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, words[1])) return 1;
  fuse_loop_config config{};
  config.max_idle_threads = 4;
  const int status = fuse_session_loop_mt(session, &config);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return status ? 1 : 0;
}
