// Changes of the inode file, item by item, and the two ways to bring them into a tree.
#pragma once

#include <map>
#include <optional>

#include "format/item.h"
#include "repair/leaf_plan.h"
#include "tree/item_merge.h"

namespace varve::repair {

using Edits = std::map<format::Key, std::optional<format::Bytes>>;  // nothing: the item goes

// Into a tree without a fault: only what changes is written anew.
class EditList : public tree::ItemEditor {
 public:
  explicit EditList(const Edits& edits) : edits_(edits), next_(edits.begin()) {}

  std::optional<format::Key> next_key() override;
  Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, tree::ItemSink& out) override;

 private:
  const Edits& edits_;
  Edits::const_iterator next_;
};

// Into an empty tree: the items of a plan, changed.
class PlanEditor : public tree::ItemEditor {
 public:
  PlanEditor(io::BlockDevice& device, const LeafPlan& plan, const Edits& edits)
      : device_(device), plan_(plan), edits_(edits) {}

  std::optional<format::Key> next_key() override;
  Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, tree::ItemSink& out) override;

 private:
  io::BlockDevice& device_;
  const LeafPlan& plan_;
  const Edits& edits_;
  bool done_ = false;
};

}  // namespace varve::repair
