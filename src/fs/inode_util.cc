#include "fs/inode_util.h"

namespace varve::fs {

Attr attr_of(const meta::Inode& inode, const meta::TreeView& view) {
  const format::Attributes& a = inode.attributes;
  Attr attr;
  attr.ino = inode.ino;
  attr.generation = a.generation;
  attr.mode = a.mode;
  attr.uid = a.uid;
  attr.gid = a.gid;
  attr.nlink = a.nlink;
  attr.rdev = a.rdev;
  attr.flags = a.flags;
  attr.size = S_ISDIR(a.mode) ? a.entries * 32 : a.size;
  attr.blocks = meta::block_count(inode, view);
  attr.atime = a.atime;
  attr.mtime = a.mtime;
  attr.ctime = a.ctime;
  attr.btime = a.btime;
  return attr;
}

bool drop_suid(meta::Inode& inode) {
  std::uint32_t& mode = inode.attributes.mode;
  const std::uint32_t before = mode;
  if (!S_ISREG(mode)) return false;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if (mode & S_IXGRP) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode != before;
}

void release_unlinked(Attempt& attempt, meta::Inode& inode) {
  meta::Store& store = attempt.store();
  References& references = attempt.engine().references();
  if (attempt.engine().options().count_references && references.count(inode.ino)) {
    store.stage_attributes(inode);
    store.stage_orphan(inode, true);
    references.add_orphan(inode.ino);
    // The last reference may have gone just before it was listed; then nobody else frees it.
    if (references.count(inode.ino) || !references.take_orphan(inode.ino)) return;
  }
  store.stage_free(inode);
}

}  // namespace varve::fs
