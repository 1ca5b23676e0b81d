// Small things that several groups of operations share.
#pragma once

#include <sys/stat.h>

#include "fs/engine.h"
#include "fs/filesystem.h"

namespace varve::fs {

inline bool is_directory(const meta::Inode& inode) { return S_ISDIR(inode.attributes.mode); }
inline bool is_regular(const meta::Inode& inode) { return S_ISREG(inode.attributes.mode); }
inline std::uint8_t entry_type(std::uint32_t mode) { return static_cast<std::uint8_t>((mode & S_IFMT) >> 12); }

// With the inode's lock held, inside the gate.
Attr attr_of(const meta::Inode& inode, const meta::TreeView& view);

inline void touch_mtime(meta::Inode& inode, Timestamp now) { inode.attributes.mtime = inode.attributes.ctime = now; }

// suid and, where it means something, sgid go when content or owner changes.
bool drop_suid(meta::Inode& inode);

// After the last name is gone, with the inode's lock held: frees it, or keeps it as an orphan while the kernel refers to it.
void release_unlinked(Attempt& attempt, meta::Inode& inode);

// The size of a file becomes `size`; the inode's lock is held. May answer would_block.
Status resize(Attempt& attempt, meta::Inode& inode, std::uint64_t size);

}  // namespace varve::fs
