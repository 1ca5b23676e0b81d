#include "fuse/transport/transport.h"

#include "fuse/protocol/protocol.h"

namespace varve::fuse {

int notify_inval_inode(Transport& transport, Ino ino, std::int64_t offset) {
  fuse_notify_inval_inode_out range{};
  range.ino = ino.v;
  range.off = offset;
  range.len = 0;  // to the end
  fuse_out_header header{};
  header.len = sizeof header + sizeof range;
  header.error = FUSE_NOTIFY_INVAL_INODE;  // `unique` stays 0: a notification
  const iovec parts[] = {{&header, sizeof header}, {&range, sizeof range}};
  return transport.send(parts);
}

int notify_retrieve(Transport& transport, Ino ino, std::uint64_t offset, std::uint32_t bytes, std::uint64_t unique) {
  fuse_notify_retrieve_out wanted{};
  wanted.notify_unique = unique;
  wanted.nodeid = ino.v;
  wanted.offset = offset;
  wanted.size = bytes;
  fuse_out_header header{};
  header.len = sizeof header + sizeof wanted;
  header.error = FUSE_NOTIFY_RETRIEVE;
  const iovec parts[] = {{&header, sizeof header}, {&wanted, sizeof wanted}};
  return transport.send(parts);
}

int notify_prune(Transport& transport, std::span<const Ino> inodes) {
  static_assert(sizeof(Ino) == sizeof(std::uint64_t));
  wire::NotifyPrune prune{};
  prune.count = static_cast<std::uint32_t>(inodes.size());
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + sizeof prune + inodes.size_bytes());
  header.error = kNotifyPrune;
  const iovec parts[] = {{&header, sizeof header}, {&prune, sizeof prune},
                         {const_cast<Ino*>(inodes.data()), inodes.size_bytes()}};
  return transport.send(parts);
}

}  // namespace varve::fuse
