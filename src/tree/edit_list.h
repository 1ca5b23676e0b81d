// Edits of a tree of items that are known one by one: what is to stand under a key from now on, or that nothing is.
#pragma once

#include <map>
#include <optional>

#include "format/item.h"
#include "tree/item_merge.h"

namespace varve::tree {

class EditList : public ItemEditor {
 public:
  void put(const format::Key& key, format::Bytes value);
  void erase(const format::Key& key);
  bool empty() const { return edits_.empty(); }
  std::size_t memory() const { return memory_; }  // bytes, about
  void clear();

  // A merge leaves the list as it is: clear it afterwards.
  void rewind() { at_ = edits_.begin(); }
  std::optional<format::Key> next_key() override;
  Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, ItemSink& out) override;
  std::optional<format::Key> peek_key(const format::Key& from) override;

 private:
  using Edits = std::map<format::Key, std::optional<format::Bytes>>;
  Edits edits_;
  Edits::const_iterator at_ = edits_.begin();
  std::size_t memory_ = 0;
};

}  // namespace varve::tree
