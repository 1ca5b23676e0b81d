// One directory's entries against its name index, collected while the inode file is walked.
#pragma once

#include <vector>

#include "check/context.h"
#include "check/links.h"

namespace varve::check {

class DirectoryIndex {
 public:
  void begin(Ino directory);
  // Items in key order. The edges go to `names`.
  void add_entry(Context& context, const format::ItemRef& item, Namespace& names);
  void add_hash(Context& context, const format::ItemRef& item);

  bool empty() const { return entries_.empty() && index_.empty(); }
  void finish(Context& context, const format::Attributes& attributes);

 private:
  struct Entry {
    std::uint64_t hash;
    std::uint64_t cookie;
    std::uint64_t second_hash;  // with another key: tells a repeated name from a collision
    auto operator<=>(const Entry&) const = default;
  };

  void ignore_hashes();
  void compare(Context& context) const;

  Ino directory_;
  std::vector<Entry> entries_;
  std::vector<Entry> index_;  // second_hash unused
};

}  // namespace varve::check
