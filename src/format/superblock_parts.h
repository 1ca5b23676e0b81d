// Parts of a superblock, where the reader or writer stands. For superblock.cc.
#pragma once

#include "format/codec.h"
#include "format/superblock.h"

namespace varve::format {

inline void put_ref(Writer& out, const NodeRef& ref) {
  out.put(ref.address.v);
  out.put(ref.blocks);
  out.put(ref.crc);
  out.put(std::uint32_t{0});
}
inline NodeRef get_ref(Reader& in) {
  NodeRef ref;
  ref.address = BlockAddr{in.u64()};
  ref.blocks = in.u64();
  ref.crc = in.u32();
  in.u32();
  return ref;
}

inline void put_tables(Writer& out, const SnapshotTables& t) {
  put_ref(out, t.root);
  out.put(std::uint64_t{t.level});  // one byte, and zeros
  for (const std::uint64_t count : {t.snapshots, t.held_blocks, t.held_data, t.shared_nodes, t.places}) out.put(count);
}
inline SnapshotTables get_tables(Reader& in) {
  SnapshotTables t;
  t.root = get_ref(in);
  t.level = in.u8();
  in.skip_to(in.position() + 7);
  for (std::uint64_t* count : {&t.snapshots, &t.held_blocks, &t.held_data, &t.shared_nodes, &t.places}) *count = in.u64();
  return t;
}

}  // namespace varve::format
