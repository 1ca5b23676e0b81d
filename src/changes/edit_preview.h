// Where the edits of a frozen delta are, in key order, for reading ahead (ItemEditor::peek_key).
#pragma once

#include <optional>
#include <vector>

#include "changes/delta.h"
#include "changes/layers.h"

namespace varve::changes {

// Belongs to one thread. The delta is frozen and sorted.
class EditPreview {
 public:
  EditPreview(const Delta& frozen, const HashKey& hash_key) : frozen_(frozen), hash_key_(hash_key) {}

  // The smallest key >= from at which something of an inode changes.
  std::optional<format::Key> next(const format::Key& from);

 private:
  std::optional<format::Key> next_in(const InodeDelta& inode, const format::Key& from);
  std::optional<std::uint64_t> next_entry(const InodeDelta& inode, std::uint64_t from) const;
  std::optional<std::uint64_t> next_hash(const InodeDelta& inode, std::uint64_t from);

  const Delta& frozen_;
  const HashKey hash_key_;
  const InodeDelta* hashed_ = nullptr;  // whose names hashes_ holds
  std::vector<std::uint64_t> hashes_;
};

}  // namespace varve::changes
