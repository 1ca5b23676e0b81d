// Makes sense of the items of one inode after the other: what is left when everything impossible is taken away. The same
// items always give the same result, so that several passes over the inode file agree.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/item.h"
#include "format/node.h"
#include "format/superblock.h"
#include "repair/action.h"
#include "repair/leaf_plan.h"

namespace varve::repair {

struct CleanEntry {
  std::uint64_t cookie = 0;
  Ino ino;
  std::uint8_t type = 0;  // DT_*
  std::string name;
};

struct CleanInode {
  Ino ino;
  bool exists = false;  // false: nothing is left of it
  bool is_old = false;  // an item of it comes from an old copy
  format::Attributes attributes;
  std::vector<CleanEntry> entries;  // ascending cookies, names differ
  format::Bytes xattrs, symlink;    // blobs
  std::uint64_t owned = 0;          // file blocks of its extents
  std::uint64_t written_end = 0;    // file block after the last written one
  std::uint64_t tail_block = 0;     // where its tail is
  format::Bytes tail;               // empty: it has none

  std::uint64_t tail_end() const { return (tail_block << kBlockShift) + tail.size(); }
  std::uint8_t type() const { return static_cast<std::uint8_t>(attributes.mode >> 12 & 0xF); }
};

// File blocks that were found to belong to somebody else, or to hold something else.
using LostBlocks = std::set<std::pair<Ino, std::uint64_t>>;

class InodeConsumer {
 public:
  virtual ~InodeConsumer() = default;
  virtual void item(const format::ItemRef&) {}  // each one, as it is
  virtual void orphan(Ino) {}                   // a sound item of the list of orphans
  // A piece of an extent as it may stay; they do not overlap. Before the inode they belong to.
  virtual void extent(Ino, std::uint64_t first, const format::Extent&, Trust) = 0;
  virtual void inode(CleanInode inode) = 0;     // when all its items have passed
};

class InodeCleaner {
 public:
  InodeCleaner(const format::Superblock& super, const LostBlocks& lost, ActionLog& actions, InodeConsumer& consumer)
      : super_(super), lost_(lost), actions_(actions), consumer_(consumer) {}

  void add(const format::ItemRef& item, Trust trust);  // in key order
  void finish();

 private:
  void begin(Ino ino);
  void end();
  void remove(const format::ItemRef& item, std::string why);
  void add_hidden(const format::ItemRef& item);
  void add_extent(const format::ItemRef& item, Trust trust);
  void add_tail(const format::ItemRef& item);
  void lose_tail(std::string_view why);
  void judge_tail();
  void pass_on(std::uint64_t first, const format::Extent& extent, Trust trust);
  void add_piece(format::Bytes& blob, std::uint64_t& next, const format::ItemRef& item);
  void add_entry(const format::ItemRef& item);
  void add_attributes(const format::ItemRef& item);
  void judge_blobs();
  bool make_up_attributes();
  void judge_entries();
  void judge_attributes();
  bool judge_type();

  const format::Superblock& super_;
  const LostBlocks& lost_;
  ActionLog& actions_;
  InodeConsumer& consumer_;
  CleanInode inode_;
  bool has_attributes_ = false, has_index_ = false, bad_xattrs_ = false;
  std::uint64_t extent_end_ = 0, next_xattr_ = 0, next_symlink_ = 0;
};

}  // namespace varve::repair
