// Turns a frozen delta into edits of the inode file, in key order.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "changes/delta.h"
#include "changes/edit_preview.h"
#include "changes/extent_merge.h"
#include "changes/layers.h"
#include "tree/item_merge.h"

namespace varve::changes {

struct EditTotals {  // by this merge; numbers are changes
  std::int64_t data_blocks = 0;
  std::int64_t reserved_blocks = 0;
  std::int64_t inodes = 0;
  bool protected_files = false;  // among what was written: immutable or append-only
};

class DeltaEditor : public tree::ItemEditor {
 public:
  // Blocks of the device that lose their owner. They are not kept: there may be as many as the device has blocks. `moved_to`: a cleaner
  // has put this one block there, or none.
  using Released = std::function<Status(const format::Extent&, BlockAddr moved_to)>;

  // `source` reads the old tree (whole attribute sets).
  DeltaEditor(Delta& frozen, const tree::TreeView& old, tree::NodeSource& source, const HashKey& hash_key, Released released,
              bool tell_moves = false);

  std::optional<format::Key> next_key() override;
  Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, tree::ItemSink& out) override;

  std::optional<format::Key> peek_key(const format::Key& from) override { return preview_.next(from); }

  const EditTotals& totals() const { return totals_; }

 private:
  struct HashEdit {
    std::uint64_t hash = 0;
    std::uint64_t cookie = 0;
    bool add = false;
    auto operator<=>(const HashEdit&) const = default;
  };
  struct EntryEdit {
    std::uint64_t cookie = 0;
    const AddedEntry* entry = nullptr;  // null: removed
  };
  using Items = std::span<const format::ItemRef>;
  using Tails = std::map<std::uint64_t, std::span<const std::byte>>;  // by file block

  void enter_inode();
  std::optional<format::Key> inode_key() const;
  // Of the items of one kind, up to the offset `last`: no limit is above the highest key.
  Status edit_group(const format::Key& key, Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status edit_orphans(Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status edit_extents(Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status put_extents(const ExtentMerge& merge, const Tails& tails, tree::ItemSink& out);
  Status edit_entries(Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status edit_hashes(Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status edit_blob(format::ItemKind kind, Items old_items, std::uint64_t last, tree::ItemSink& out);
  Status edit_attributes(Items old_items, tree::ItemSink& out);
  Status release_item(const format::ItemRef& item);
  Status release(const format::Extent& extent, BlockAddr moved_to = {});
  Status release_replaced(const PlacedExtent& part);
  Status load_xattr_blob();

  Delta& frozen_;
  const tree::TreeView& old_;
  tree::NodeSource& source_;
  const HashKey hash_key_;
  const Released released_;
  const bool tell_moves_;

  EditPreview preview_;
  std::vector<std::pair<Ino, bool>> orphans_;
  std::size_t orphan_at_ = 0;

  std::size_t inode_at_ = 0;
  struct Current {  // the inode whose turn it is
    InodeDelta* inode = nullptr;
    format::Key freed_from;        // of a freed one: how far its items are gone
    std::uint64_t block_at = 0;    // extents below are done
    bool extents_done = true;
    std::vector<EntryEdit> entries;
    std::size_t entry_at = 0;
    std::vector<HashEdit> hashes;
    std::size_t hash_at = 0;
    std::uint64_t xattr_piece = 0, symlink_piece = 0;
    bool xattr_done = true, symlink_done = true, attributes_done = true;
    bool xattr_loaded = false;
    format::Bytes xattr_blob, symlink_blob;
    std::int64_t block_change = 0;  // exact
  };
  Current now_;

  EditTotals totals_;
};

}  // namespace varve::changes
