#include "check/links.h"

#include <dirent.h>

#include <algorithm>

namespace varve::check {

namespace {

using Connection = InodeFacts::Connection;

void count_entry(Context& context, Namespace& names, const NameEdge& edge) {
  InodeFacts* child = names.find(edge.child);
  const Where where{{}, edge.directory()};
  if (!child) return context.add(Code::entry_dangling, where, fmt::format("inode {} does not exist", edge.child));
  ++child->names;
  if (child->type != edge.type())
    context.add(Code::entry_type_wrong, where, fmt::format("inode {} is of type {}, not {}", edge.child, child->type, edge.type()));
  if (child->type != DT_DIR) return;
  if (InodeFacts* directory = names.find(edge.directory())) ++directory->subdirectories;
  if (child->names > 1)
    context.add(Code::directory_twice, {{}, edge.child}, fmt::format("again in directory {}", edge.directory()));
  if (child->parent != edge.directory())
    context.add(Code::parent_wrong, {{}, edge.child}, fmt::format("is in {}, says {}", edge.directory(), child->parent));
}

// Follows the parents of a directory up to the root or to something already known.
void connect(Context& context, Namespace& names, InodeFacts& start) {
  std::vector<InodeFacts*> path;
  InodeFacts* at = &start;
  while (at && at->connection == Connection::unknown) {
    at->connection = Connection::visiting;
    path.push_back(at);
    at = at->names == 0 ? nullptr : names.find(at->parent);
  }
  const bool connected = at && at->connection == Connection::connected;
  for (InodeFacts* directory : path) {
    directory->connection = connected ? Connection::connected : Connection::lost;
    const bool orphan = directory->names == 0 && directory->nlink == 0;
    if (!connected && !orphan)
      context.add(Code::unconnected, {{}, directory->ino}, fmt::format("its parent is {}", directory->parent));
  }
}

void check_connections(Context& context, Namespace& names) {
  InodeFacts* root = names.find(kRootIno);
  if (!root || root->type != DT_DIR) {
    context.add(Code::no_root, {{}, kRootIno});
    return;
  }
  if (root->parent != kRootIno)
    context.add(Code::parent_wrong, {{}, kRootIno}, fmt::format("the root says {}", root->parent));
  root->connection = Connection::connected;
  for (InodeFacts& inode : names.inodes)
    if (inode.type == DT_DIR) connect(context, names, inode);
}

void check_link_count(Context& context, const InodeFacts& inode) {
  const bool directory = inode.type == DT_DIR;
  const bool linked = inode.names > 0 || inode.ino == kRootIno;
  const std::uint64_t expected = !linked ? 0 : directory ? 2 + std::uint64_t{inode.subdirectories} : inode.names;
  if (inode.nlink != expected)
    context.add(Code::link_count_wrong, {{}, inode.ino}, fmt::format("{} instead of {}", inode.nlink, expected));
}

void check_orphans(Context& context, Namespace& names) {
  for (const Ino orphan : names.orphans) {
    const InodeFacts* inode = names.find(orphan);
    if (!inode) context.add(Code::orphan_missing, {{}, orphan});
    else if (inode->nlink > 0) context.add(Code::orphan_has_links, {{}, orphan}, fmt::format("{} links", inode->nlink));
  }
  for (const InodeFacts& inode : names.inodes)
    if (inode.nlink == 0 && !std::ranges::binary_search(names.orphans, inode.ino))
      context.add(Code::not_in_orphans, {{}, inode.ino});
}

}  // namespace

InodeFacts* Namespace::find(Ino ino) {
  const auto found = std::ranges::lower_bound(inodes, ino, {}, &InodeFacts::ino);
  return found != inodes.end() && found->ino == ino ? &*found : nullptr;
}

void Namespace::expect(const Context& context) {
  const std::uint64_t most = context.super().device_blocks * (kBlockSize / 64);  // an inode takes so much at least
  const std::uint64_t count = std::min(context.super().inodes, most);
  inodes.reserve(count);
  edges.reserve(count);
}

bool Namespace::is_full(const Context& context) {
  const std::uint64_t bound = context.options.memory_bytes;
  const bool grows = inodes.size() == inodes.capacity() || edges.size() == edges.capacity();
  if (!bound || !grows) return false;
  // While a table moves to a larger place it is there twice, and half as much again.
  const std::uint64_t now = inodes.capacity() * sizeof(InodeFacts) + edges.capacity() * sizeof(NameEdge);
  return memory_for(context.super()) + now * 2 > bound;
}

void check_links(Context& context, Namespace& names) {
  std::uint64_t done = 0;
  for (const NameEdge& edge : names.edges) {
    count_entry(context, names, edge);
    if (++done % 65536 == 0) context.update("links", done, names.edges.size());
  }
  for (const InodeFacts& inode : names.inodes) check_link_count(context, inode);
  check_orphans(context, names);
  check_connections(context, names);
  context.update("links", names.edges.size(), names.edges.size());
}

}  // namespace varve::check
